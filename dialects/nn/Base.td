// Base.td - common parts of the records of nn.

#ifndef TMC_DIALECTS_NN_BASE_TD
#define TMC_DIALECTS_NN_BASE_TD

include "dialects/interfaces/Interfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::tmc::nn";
  let summary = "Tensor operations of a neural network, as values";
}

def NN_Float : StaticShapeTensorOf<[F16, BF16, F32, F64]>;
/// The types of a product's factors.
def NN_Factor : StaticShapeTensorOf<[F8E4M3FN, F8E5M2, F16, BF16, F32, F64]>;
/// The type of scales of 8-bit codes.
def NN_Scale : StaticShapeTensorOf<[F32]>;
def NN_Int : StaticShapeTensorOf<[I32, I64]>;
def NN_Bool : StaticShapeTensorOf<[I1]>;
def NN_Tensor : StaticShapeTensorOf<kElementTypes>;

/// A pure op with the interfaces for cost and cuts that planners use.
class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat([
        Pure, DeclareOpInterfaceMethods<CostOpInterface>,
        DeclareOpInterfaceMethods<CutOpInterface>], traits)> {
  let hasVerifier = 1;
}

/// Result types follow from the operands: one function checks and infers them.
class NN_InferredOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([InferTypeOpAdaptor], traits)> {
  let hasVerifier = 0;
}

defvar Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Kernel = DeclareOpInterfaceMethods<KernelOpInterface>;
/// Multiplies numbers that may be narrow.
defvar Narrowing = DeclareOpInterfaceMethods<PrecisionOpInterface>;
/// The same; TF32 is a choice for f32.
defvar NarrowingTF32 =
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["takesTF32"]>;
/// The same; an f32 factor is rounded when it is read.
defvar RoundingAsRead =
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["roundsAsRead"]>;
defvar RoundingAsReadTF32 =
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["takesTF32",
                                                     "roundsAsRead"]>;
/// Reads activations in their stored type.
defvar Storing = DeclareOpInterfaceMethods<ActivationOpInterface>;
defvar InPlaceKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["getOverwrites"]>;
/// Some of its results cost nothing if no op reads them.
defvar DroppingKernel =
  DeclareOpInterfaceMethods<KernelOpInterface, ["getDroppableResults"]>;
defvar AccumulatingKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["getAccumulator"]>;
/// One of several results accumulates; others cost nothing if no op reads them.
defvar AccumulatingDroppingKernel =
    DeclareOpInterfaceMethods<KernelOpInterface,
                              ["getAccumulator", "getAccumulated",
                               "getDroppableResults"]>;
defvar StridedKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["acceptsStrides"]>;
/// Some attributes may make it nonlinear.
defvar MaybeLinear = DeclareOpInterfaceMethods<LinearOpInterface, ["isLinear"]>;
defvar Linear = DeclareOpInterfaceMethods<LinearOpInterface>;
defvar View = DeclareOpInterfaceMethods<ViewOpInterface>;

#endif // TMC_DIALECTS_NN_BASE_TD
