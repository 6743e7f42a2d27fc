#ifndef TMC_DIALECTS_MEM_MEM_TD
#define TMC_DIALECTS_MEM_MEM_TD

include "dialects/interfaces/Machine.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mem_Dialect : Dialect {
  let name = "mem";
  let cppNamespace = "::tmc::mem";
  let summary = "How a step runs: an arena, launches, copies, events";
  let useDefaultAttributePrinterParser = 1;
}

def Mem_SpaceAttr : Machine_SpaceAttr<Mem_Dialect>;
def Mem_BytesAttr : Machine_BytesAttr<Mem_Dialect>;

def Mem_StaticMemRef : Type<
    And<[AnyMemRef.predicate, HasStaticShapePred]>, "memref of static shape",
    "::mlir::MemRefType">;

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

def Mem_ProgramOp : Op<Mem_Dialect, "program", [
    Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "one step: its buffers, then what runs on them, in order";
  let description = [{
    There is an arena for each space. Their sizes are known once buffers are
    placed: `arena_bytes = #mem.bytes<device = 512, host = 4096>`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<Mem_BytesAttr>:$arena_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The size of a space's arena in bytes; -1 until buffers are placed.
    int64_t arenaBytesIn(::tmc::SpaceKind space) {
      auto bytes = getArenaBytes();
      return bytes ? (*bytes)[space] : -1;
    }
    int64_t deviceArenaBytes() {
      auto bytes = getArenaBytes();
      return bytes ? bytes->device() : -1;
    }
  }];
}

def Mem_KernelOp : Op<Mem_Dialect, "kernel", [
    Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "a generated kernel, as the tensor ops it computes";
  let description = [{
    The body of an `nn.fused` under a name; equal bodies are one kernel.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
  }];
}

def Mem_YieldOp : Op<Mem_Dialect, "yield", [
    Pure, Terminator, ParentOneOf<["KernelOp"]>]> {
  let summary = "what a kernel writes";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

def Mem_BufferOp : Op<Mem_Dialect, "buffer"> {
  let summary = "bytes in an arena";
  let description = [{
    `offset` counts bytes from the start of the arena of the buffer's space, which
    is the memory space of its type, and is -1 until placed.
    `buffer_class` says what it holds, as in reports. A persistent buffer is
    alive during the whole step and between steps; another from the first launch
    that touches it to the last. `tensor` is what the runtime must know of an
    argument or an output of the step (its role, how it starts, ...), `constant`
    the content of a constant.
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$buffer_class,
                       UnitAttr:$persistent,
                       DefaultValuedAttr<I64Attr, "-1">:$offset,
                       OptionalAttr<DictionaryAttr>:$tensor,
                       OptionalAttr<ElementsAttr>:$constant);
  let results = (outs Mem_StaticMemRef:$memref);
  let assemblyFormat = "$name $buffer_class attr-dict `:` type($memref)";
}

def Mem_ViewOp : Op<Mem_Dialect, "view", [Pure]> {
  let summary = "a buffer's bytes read another way";
  let arguments = (ins AnyMemRef:$source);
  let results = (outs AnyMemRef:$memref);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($memref)";
}

def Mem_PieceOp : Op<Mem_Dialect, "piece", [Pure]> {
  let summary = "one of the equal pieces of a buffer along dimension 0";
  let arguments = (ins Mem_StaticMemRef:$source, Index:$index);
  let results = (outs AnyMemRef:$memref);
  let assemblyFormat = [{
    $source `[` $index `]` attr-dict `:` type($source) `to` type($memref)
  }];
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

def Mem_EngineAttr : Machine_EngineAttr<Mem_Dialect>;

def Mem_LaunchOp : Op<Mem_Dialect, "launch", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "one run of one kernel";
  let description = [{
    `callee` is a class of the runtime, or the symbol of a `mem.kernel` if
    `generated`. `params` are pairs of a name and a value in the order of the
    kernel's declaration. `in_order` and `out_order` arrange operands for the
    kernel, -1 for one that is absent; empty: all in order. An input may be an
    output's buffer: an overwrite that the kernel allows. `accumulate` adds to
    output `accumulated`; with `first_writes` only from the second run of the
    loop on. `op`
    names the op that it was, `instance` counts its executions from 0. `flops`
    and `bytes` are what one run costs, as the op said. On cuda a run is
    `device_launches` kernels of the device, and if it multiplies matrices, then
    `unaligned_products` of its products have rows that aren't multiples of 16
    bytes. With an `engine`, the host's or the network's, it is work of that.

    Runs of a `joinable` kernel that stand side by side can be one launch of the
    device: those from a first one with `joins_next` to the next one without.
    The operands of each are alive during all of them. `device_launches` of
    the first counts for all, and the others have none.
  }];
  let arguments = (ins StrAttr:$callee, UnitAttr:$generated,
                       Variadic<AnyMemRef>:$inputs, Variadic<AnyMemRef>:$outputs,
                       Optional<AnyMemRef>:$scratch, ArrayAttr:$params,
                       DenseI64ArrayAttr:$in_order,
                       DenseI64ArrayAttr:$out_order, UnitAttr:$accumulate,
                       DefaultValuedAttr<I64Attr, "0">:$accumulated,
                       UnitAttr:$first_writes,
                       OptionalAttr<Mem_EngineAttr>:$engine,
                       StrAttr:$op, I64Attr:$instance,
                       DefaultValuedAttr<I64Attr, "0">:$flops,
                       DefaultValuedAttr<I64Attr, "0">:$bytes,
                       DefaultValuedAttr<I64Attr, "1">:$device_launches,
                       OptionalAttr<I64Attr>:$unaligned_products,
                       UnitAttr:$joinable, UnitAttr:$joins_next);
  let assemblyFormat = [{
    $callee `(` ($inputs^ `:` type($inputs))? `)` `->` `(`
    ($outputs^ `:` type($outputs))? `)` (`scratch` `(` $scratch^ `:`
    type($scratch) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Mem_LoopOp : Op<Mem_Dialect, "loop", [SingleBlock, NoTerminator]> {
  let summary = "the body of a step, run `count` times";
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::Value getIndex() { return getBlock().getArgument(0); }
  }];
}

def Mem_FillOp : Op<Mem_Dialect, "fill", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "zeros, where a loop's sums begin";
  let arguments = (ins AnyMemRef:$target);
  let assemblyFormat = "$target attr-dict `:` type($target)";
}

//===----------------------------------------------------------------------===//
// Work beside the kernels
//===----------------------------------------------------------------------===//

/// Engines run concurrently, each first in, first out. Events order them: a
/// `record` marks the current position of its engine, and a `wait` holds
/// another engine until that position is passed. Work is a copy, or a launch on
/// another engine than compute; its own event follows it, and a `done` marks the place in the
/// program where the work must be complete:
///
///     mem.record 0 on compute               kernels so far
///     mem.wait 0 on d2h
///     mem.copy %a to %b on d2h
///     mem.record 1 on d2h                   the copy's event
///     mem.launch "Matmul" ...               runs meanwhile
///     mem.wait 1 on compute
///     mem.done 1                            %a's bytes may be another's
///
/// A wait refers to the latest record of its event before it.
def Mem_CopyOp : Op<Mem_Dialect, "copy", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "bytes from a buffer in one space to a buffer in another";
  let description = [{
    The engine is that of the two spaces. `op` names what is copied, `instance`
    counts its copies from 0.
  }];
  let arguments = (ins Mem_StaticMemRef:$source, Mem_StaticMemRef:$target,
                       Mem_EngineAttr:$engine, StrAttr:$op, I64Attr:$instance);
  let assemblyFormat = [{
    $source `to` $target `on` `` $engine attr-dict
    `:` type($source) `,` type($target)
  }];
}

def Mem_RecordOp : Op<Mem_Dialect, "record"> {
  let summary = "marks a point of an engine";
  let arguments = (ins I64Attr:$event, Mem_EngineAttr:$engine);
  let assemblyFormat = "$event `on` `` $engine attr-dict";
}

def Mem_WaitOp : Op<Mem_Dialect, "wait"> {
  let summary = "holds an engine until a point of another is passed";
  let arguments = (ins I64Attr:$event, Mem_EngineAttr:$engine);
  let assemblyFormat = "$event `on` `` $engine attr-dict";
}

def Mem_DoneOp : Op<Mem_Dialect, "done"> {
  let summary = "where the work of an event is over";
  let description = [{
    What the work touches is alive from its start through here.
  }];
  let arguments = (ins I64Attr:$event);
  let assemblyFormat = "$event attr-dict";
}

#endif // TMC_DIALECTS_MEM_MEM_TD
