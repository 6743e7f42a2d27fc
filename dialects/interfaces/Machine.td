#ifndef TMC_DIALECTS_INTERFACES_MACHINE_TD
#define TMC_DIALECTS_INTERFACES_MACHINE_TD

include "mlir/IR/AttrTypeBase.td"

/// A row of a table in runtime/kernels/Machine.h, by the name that stands there
/// (dialects/interfaces/Machine.h parses and prints it). Getters of ops return
/// the kind itself.
class Machine_RowAttr<Dialect dialect, string name, string kind>
    : AttrDef<dialect, name> {
  let parameters = (ins kind:$value);
  let returnType = kind;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall =
      cppNamespace # "::" # cppClassName # "::get($_builder.getContext(), $0)";
  let assemblyFormat = "$value";
}

class Machine_SpaceAttr<Dialect dialect>
    : Machine_RowAttr<dialect, "Space", "::tmc::SpaceKind"> {
  let mnemonic = "space";
  let assemblyFormat = "`<` $value `>`";
}

class Machine_EngineAttr<Dialect dialect>
    : Machine_RowAttr<dialect, "Engine", "::tmc::EngineKind"> {
  let mnemonic = "engine";
}

/// A number of bytes for each space; beside the device's, zeros aren't printed.
class Machine_BytesAttr<Dialect dialect>
    : Machine_RowAttr<dialect, "Bytes", "::tmc::PerSpace<int64_t>"> {
  let mnemonic = "bytes";
  let assemblyFormat = "`<` $value `>`";
}

#endif // TMC_DIALECTS_INTERFACES_MACHINE_TD
