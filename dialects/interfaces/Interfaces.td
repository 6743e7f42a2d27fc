#ifndef TMC_DIALECTS_INTERFACES_INTERFACES_TD
#define TMC_DIALECTS_INTERFACES_INTERFACES_TD

include "mlir/IR/OpBase.td"

/// The element types of a step's values.
defvar kElementTypes = [F8E4M3FN, F8E5M2, F16, BF16, F32, F64, I1, I8, I32, I64];

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    What one execution of an op costs. Planners compare ops only through this
    interface; scratch memory belongs to the kernel (`KernelOpInterface`).
  }];
  let methods = [
    InterfaceMethod<"Multiply-adds count as two.", "int64_t", "getFlops">,
    InterfaceMethod<
      "Bytes that must cross the memory bus, with no reuse between ops.",
      "int64_t", "getBytesMoved", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/[{ return ::tmc::sumOfTensorBytes($_op); }]>,
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op that can write its own vector-Jacobian product. An op without a
    derivative says so with the trait `NotDifferentiable` instead.
  }];
  let methods = [
    InterfaceMethod<[{
        Returns one gradient per operand, null where the operand takes none. A
        null entry of `resultGrads` is a zero; at least one is not null.
        `wanted[i]` is false where nobody asks for the gradient of operand i:
        the op need not compute it. Any primal value the returned IR uses
        becomes a saved activation; there is no separate list to keep in step.
      }],
      "::llvm::SmallVector<::mlir::Value>", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$resultGrads,
           "::llvm::ArrayRef<bool>":$wanted)>,
  ];
}

/// Stops gradients: integers, comparisons, gradient ops themselves.
def NotDifferentiable : NativeOpTrait<"NotDifferentiable"> {
  let cppNamespace = "::tmc";
}

def CutOpInterface : OpInterface<"CutOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    The ways in which an op may be cut into pieces. A piece is the op with the same attributes
    and smaller types. A cut says which dimension of each operand is cut, how the
    results of the pieces make up those of the whole, and how many units there
    are to deal out (Cuts.h). It is tested:
    interpreter(pieces, rejoined) = interpreter(whole).

    Micro-batches, tiles, data and tensor parallelism look for the cuts of whole
    functions in these lists.
  }];
  let methods = [
    InterfaceMethod<[{
        All cuts that the op can express; an empty list if it has none.
      }],
      "::tmc::OpCuts", "getCuts">,
  ];
  let extraClassDeclaration = [{
    /// `batchDims[i]` is the dimension of operand i that holds the batch, or -1
    /// where the operand doesn't depend on it. Returns how each result rejoins
    /// in the cut with these dimensions, or the reason why there is none.
    ::tmc::BatchSplit getSplit(::llvm::ArrayRef<int64_t> batchDims) {
      return getCuts().find(batchDims);
    }
  }];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op that one runtime kernel executes. The kernel is a class of the runtime
    (`tmc::Matmul`) whose parameters are printed as designated initializers; its
    inputs and outputs are the op's operands and results, by default in order.
  }];
  let methods = [
    InterfaceMethod<[{
        The kernel for buffers of these types, one per operand, null where an
        optional operand is absent. Types carry strides where
        `acceptsStrides` says that the kernel takes them.
      }],
      "::tmc::KernelCall", "getKernel",
      (ins "::llvm::ArrayRef<::mlir::MemRefType>":$inputs,
           "::tmc::Backend":$backend)>,
    InterfaceMethod<[{
        True if the kernel reads operand `index` by strides, so that a slice
        needs no copy. The innermost dimension is contiguous in any case.
      }],
      "bool", "acceptsStrides", (ins "unsigned":$index), /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Pairs of operand and result numbers that may share their bytes: the
        kernel reads an element of the operand before it writes that element of
        the result, and nothing of the operand afterwards.
      }],
      "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getOverwrites",
      (ins), /*methodBody=*/"", /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
        Results that needn't be written where nobody uses them. An operand that
        one of them overwrites isn't read then.
      }],
      "::llvm::SmallVector<unsigned>", "getDroppableResults", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
        The operand that a result accumulates onto, in place, or -1. The buffer
        of that operand *is* the result's; on the first of several passes the
        runtime tells the kernel to write instead of adding.
      }],
      "int64_t", "getAccumulator", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return -1;">,
    InterfaceMethod<[{
        The number of the result that accumulates.
      }],
      "unsigned", "getAccumulated", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return 0;">,
    InterfaceMethod<[{
        True if the kernel is work of the network, beside the device's kernels.
      }],
      "bool", "isOnNetwork", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
  ];
}

def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op whose result is its first operand's bytes, read another way. It costs
    nothing and is no launch.
  }];
  let methods = [
    InterfaceMethod<[{
        The result as a view of `source`, with strides and an offset in
        elements, or null where it can't be one without a copy.
      }],
      "::mlir::MemRefType", "viewOf", (ins "::mlir::MemRefType":$source)>,
  ];
}

def PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op that makes each element of its only result from the elements of its
    operands at the same place. It can be part of a fused kernel, on every
    backend, by its expression alone.
  }];
  let methods = [
    InterfaceMethod<[{
        One element of the result as an expression over the value types of
        runtime/kernels/Vec.h: the same text for one element and for several.
        Floats of every width are computed in f32.
      }],
      "std::string", "getExpression", (ins "const ::tmc::OperandText &":$text)>,
    InterfaceMethod<[{
        True if the expression may yield a float that the result's type can't
        hold, which the kernel then rounds. False for a choice among operands.
      }],
      "bool", "roundsResult">,
    InterfaceMethod<[{
        Work on one element, in simple vector operations: what fusion weighs
        against keeping the value.
      }],
      "unsigned", "getElementCost">,
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op whose kernel multiplies narrow numbers, with sums in f32. What it
    multiplies may be narrowed in place, with some of its results; the rest of
    its operands and results stays as it is.
  }];
  let methods = [
    InterfaceMethod<[{
        Operands that it multiplies: of one element type, or some of f32, which
        are rounded to it as they are read.
      }],
      "::llvm::SmallVector<unsigned>", "getFactors">,
    InterfaceMethod<[{
        True if a kernel rounds factor `factor`, of f32, as it reads it, on a
        card or on the cpu: no narrow copy of it is needed.
      }],
      "bool", "roundsAsRead", (ins "unsigned":$factor, "bool":$onCard),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        True if it has a unit attribute `tf32`, with which factors of f32 are
        rounded to TF32 as they are read.
      }],
      "bool", "takesTF32", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<"The element type that factors are multiplied in.",
      "::mlir::Type", "getProductType", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return ::tmc::productTypeOf($_op, $_op.getFactors());
      }]>,
    InterfaceMethod<"Results of the factors' element type.",
      "::llvm::SmallVector<unsigned>", "getRoundedResults">,
    InterfaceMethod<[{
        True if those results may be f32 as well, and the operands that are
        added to them with them.
      }],
      "bool", "mayKeepSums", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        True if factors may be codes of 8 bits with scales, of the whole tensor
        or of blocks, on a card or on the cpu.
      }],
      "bool", "takesCodes", (ins "bool":$onCard, "bool":$inBlocks),
      /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        The dimension of a factor along which products are summed up, one of the
        two innermost. Only where `takesCodes`.
      }],
      "unsigned", "getSummedDim", (ins "unsigned":$factor), /*methodBody=*/"",
      /*defaultImplementation=*/[{
        llvm_unreachable("an op that takes no codes");
      }]>,
    InterfaceMethod<[{
        Multiplies these codes of `nn.quantize`, of both factors, and their
        scales. Only where `takesCodes`.
      }],
      "void", "setCodes",
      (ins "::mlir::ValueRange":$codes, "::mlir::ValueRange":$scales),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        llvm_unreachable("an op that takes no codes");
      }]>,
    InterfaceMethod<"Operands that are added to a result and have its type.",
      "::llvm::SmallVector<unsigned>", "getAddends", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return {};">,
  ];
}

def ActivationOpInterface : OpInterface<"ActivationOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op that multiplies nothing narrow, but whose kernel takes activations as
    they are stored: it widens what it reads, computes in f32, and rounds
    result 0 once. The rest of its operands and results is f32 in any case.
  }];
  let methods = [
    InterfaceMethod<"Operands that have the element type of result 0.",
                    "::llvm::SmallVector<unsigned>", "getActivations">,
  ];
}

def LinearOpInterface : OpInterface<"LinearOpInterface"> {
  let cppNamespace = "::tmc";
  let description = [{
    An op with one operand whose result is linear in it, but for rounding: made
    of a sum, it is the sum of what is made of the parts.
  }];
  let methods = [
    InterfaceMethod<"False where attributes make an exception.", "bool",
                    "isLinear", (ins), /*methodBody=*/"",
                    /*defaultImplementation=*/"return true;">,
  ];
}

#endif // TMC_DIALECTS_INTERFACES_INTERFACES_TD
