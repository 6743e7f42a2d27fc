#ifndef TMC_PASSES_PASSES_TD
#define TMC_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def Autodiff : Pass<"tmc-autodiff", "::mlir::ModuleOp"> {
  let summary = "derive the training step from the forward function";
  let description = [{
    Replaces `func.func @forward` by `train.step`: the forward ops, the loss's
    gradient by each trained param (one argument, one gradient, summed in the
    order of the uses from last to first), the optimizer's update of each, and
    the gradients' global norm. Optimizer states become arguments of their own.
    What a gradient uses of the forward values is what the step saves; there is
    no other list.

    With several micro-batches the differentiated body stands in a
    `train.micro_batch` that accumulates gradients and loss, and the updates
    after it. A smaller last piece follows the loop, adds to what it leaves, and
    updates begin in it.

    With a loss scale the gradient of the loss is that, and `train.loss_scale`
    decides, once all gradients are known, whether they are finite.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"",
           "adamw(beta1=0.9,...), adamw8bit(...), adamw4bit(...), "
           "adafactor(...), lion(beta1=0.9,...) or sgd(momentum=0.9,...)">,
    Option<"lossScaleSpec", "loss-scale", "std::string", /*default=*/"\"\"",
           "What the loss is multiplied by: dynamic(...) or a number; none: "
           "nothing, and gradients in fp16 are refused">,
    ListOption<"outputs", "outputs", "std::string",
               "Results of the forward function to return beside the loss">,
    Option<"keepGradients", "keep-gradients", "bool", /*default=*/"false",
           "Return the gradients too, for tests">,
  ];
}

def Adapt : Pass<"tmc-adapt", "::mlir::ModuleOp"> {
  let summary = "add low-rank adapters to products, and train these alone";
  let description = [{
    Each product of activations with a matrix parameter that a target of `lora`
    fits gets an adapter: two more parameters, whose product is added to the
    matrix, times a scale (`LoraSpec.h`). All parameters of the model become
    frozen, but those that `train` names. With dropout each adapter has a mask of
    its own for what it reads, drawn from the run's seed.

    A target that fits nothing is an error, as is a matrix that is read in
    several places, and a rank over a dimension.

    Before:

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>, %w: tensor<6x4xf32> {train.role = #train.role<param>, train.name = "fc.weight"}) -> (tensor<8x6xf32>) {
      %y = nn.matmul %x, %w transpose_rhs : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    ```

    After `-tmc-adapt=lora="r=2,alpha=4,targets=fc"`:

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>, %w: tensor<6x4xf32> {train.frozen, train.role = #train.role<param>, train.name = "fc.weight"}, %a: tensor<2x4xf32> {train.adapter = "fc", train.init = #train.draw<"uniform", 5.000000e-01 : f64>, train.name = "fc.lora_A.weight", train.role = #train.role<param>}, %b: tensor<6x2xf32> {train.adapter = "fc", train.init = "zeros", train.name = "fc.lora_B.weight", train.role = #train.role<param>}) -> (tensor<8x6xf32>) {
      %two = arith.constant dense<2.0> : tensor<8x2xf32>
      %y0 = nn.matmul %x, %w transpose_rhs : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
      %u = nn.matmul %x, %a transpose_rhs : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
      %s = arith.mulf %u, %two : tensor<8x2xf32>
      %v = nn.matmul %s, %b transpose_rhs : (tensor<8x2xf32>, tensor<6x2xf32>) -> tensor<8x6xf32>
      %y = arith.addf %y0, %v : tensor<8x6xf32>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::tmc::train::TrainDialect",
                           "::mlir::arith::ArithDialect"];
  let options = [
    Option<"lora", "lora", "std::string", /*default=*/"\"\"",
           "The adapters: r=16,alpha=32,targets=NAME,... (LoraSpec.h)">,
    ListOption<"train", "train", "std::string",
               "Globs over names of parameters that are trained whole">,
  ];
}

def Precision : Pass<"tmc-precision", "::tmc::train::StepOp"> {
  let summary = "narrow what products multiply";
  let description = [{
    Products and attention multiply numbers of the type that `spec` gives them by
    name, and round what they return to it; sums are in f32. Casts are ops: one
    for each value that a product reads, right behind it, and one behind each
    rounded result, from where they move behind views and transposes. Gradients
    of parameters stay f32, and so does everything else.
  }];
  let options = [
    Option<"spec", "spec", "std::string", /*default=*/"\"f32\"",
           "f32, bf16, fp16 or fp8, then exceptions: bf16,NAME=f32,...">,
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "what the step is for: which products take codes of 8 bits">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def StoreFrozen : Pass<"tmc-store-frozen", "::tmc::train::StepOp"> {
  let summary = "store weights that aren't trained in few bits";
  let description = [{
    A frozen parameter that only products of matrices read becomes an argument of
    codes, and others of their maxima; `spec` names the format (`BaseSpec.h`).
    Each reader gets an `nn.dequantize` of its own, in its block, so that a plan
    may keep the numbers between two readers of a block, or make them again. A
    parameter has at least 4,096 numbers, which 64 divides for nf4. One whose
    product is the logits of a cross-entropy stays as it is, unless it is named.

    After `precision`, which decides the type that a reader multiplies.

    Before:

    ```mlir
    train.step @step(%x: tensor<8x64xf32> {...}, %w: tensor<64x64xf32> {train.frozen, train.name = "w", ...}) ... {
      %y = nn.matmul %x, %w transpose_rhs : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    ```

    After `spec=nf4`:

    ```mlir
    train.step @step(%x: tensor<8x64xf32> {...},
                     %w: tensor<2048xi8> {train.frozen, train.name = "w", train.stored = #train.stored<tensor<64x64xf32>, "w.absmax", "w.nested_absmax">, ...},
                     %a: tensor<64xi8> {train.frozen, train.maxima_of = "w", train.name = "w.absmax", ...},
                     %s: tensor<2xf32> {train.frozen, train.maxima_of = "w", train.name = "w.nested_absmax", ...}) ... {
      %d = nn.dequantize %w, %a nested(%s) : (tensor<2048xi8>, tensor<64xi8>, tensor<2xf32>) -> tensor<64x64xf32>
      %y = nn.matmul %x, %d transpose_rhs : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"spec", "spec", "std::string", /*default=*/"\"\"",
           "nf4, nf4:plain, int8, bf16, f32 or keep, then exceptions: "
           "nf4,NAME=bf16,...; empty: nothing changes">,
  ];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

def JoinProducts : Pass<"tmc-join-products", "::mlir::ModuleOp"> {
  let summary = "make one product of those that multiply one value";
  let description = [{
    Products of one value by several parameters [N, K], with biases or without,
    become one product by a parameter that holds their rows one after another,
    and slices of its result. `train.parts` of the new parameter names the
    model's own. That happens where every reader of a result takes columns of a
    wider tensor, where `optimizer` updates rows without regard to the rows
    beside them, and where `precision` has the same exception for all.

    Queries and keys may be rotated by one `nn.rotary_embedding` each, by the same
    angles, before attention reads them. One rotation of the first heads of the
    joined result then does the work of both, and the heads of values stay.

    Before:

    ```mlir
    func.func @forward(%x: tensor<8x16xf32>, %a: tensor<4x16xf32> {train.role = #train.role<param>, train.name = "q.weight"}, %b: tensor<4x16xf32> {train.role = #train.role<param>, train.name = "k.weight"}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
      %q = nn.matmul %x, %a transpose_rhs : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
      %k = nn.matmul %x, %b transpose_rhs : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
      // ... readers of %q and %k
    }
    ```

    After:

    ```mlir
    func.func @forward(%x: tensor<8x16xf32>, %w: tensor<8x16xf32> {train.role = #train.role<param>, train.name = "{q,k}.weight", train.parts = [#train.part<"q.weight", 4>, #train.part<"k.weight", 4>]}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
      %y = nn.matmul %x, %w transpose_rhs : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
      %q = nn.slice %y [0, 0] step [1, 1] : (tensor<8x8xf32>) -> tensor<8x4xf32>
      %k = nn.slice %y [0, 4] step [1, 1] : (tensor<8x8xf32>) -> tensor<8x4xf32>
      // ... readers of %q and %k
    }
    ```

    Before, with two heads of queries, and one of keys and of values:

    ```mlir
    %q = nn.matmul %x, %a transpose_rhs : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
    %q1 = nn.reshape %q : (tensor<8x8xf32>) -> tensor<2x4x2x4xf32>
    %q2 = nn.rotary_embedding %q1, %cos, %sin : (tensor<2x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> tensor<2x4x2x4xf32>
    // ... %k2, rotated as well, and %v1, which isn't
    %o, %l = nn.attention %q2, %k2, %v1 {scale = 0.5 : f64} : (tensor<2x4x2x4xf32>, tensor<2x4x1x4xf32>, tensor<2x4x1x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
    ```

    After:

    ```mlir
    %y = nn.matmul %x, %w transpose_rhs : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %y1 = nn.reshape %y : (tensor<8x16xf32>) -> tensor<2x4x4x4xf32>
    %y2 = nn.rotary_embedding %y1, %cos, %sin {heads = 3 : i64} : (tensor<2x4x4x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> tensor<2x4x4x4xf32>
    %q = nn.slice %y2 [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<2x4x4x4xf32>) -> tensor<2x4x2x4xf32>
    %k = nn.slice %y2 [0, 0, 2, 0] step [1, 1, 1, 1] : (tensor<2x4x4x4xf32>) -> tensor<2x4x1x4xf32>
    %v = nn.slice %y2 [0, 0, 3, 0] step [1, 1, 1, 1] : (tensor<2x4x4x4xf32>) -> tensor<2x4x1x4xf32>
    %o, %l = nn.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<2x4x2x4xf32>, tensor<2x4x1x4xf32>, tensor<2x4x1x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::tmc::train::TrainDialect"];
  let options = [
    Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"",
           "how parameters will be updated, as in tmc-autodiff">,
    Option<"precision", "precision", "std::string", /*default=*/"\"f32\"",
           "the types of products, as in tmc-precision">,
    Option<"base", "base", "std::string", /*default=*/"\"\"",
           "the storage of frozen parameters, as in tmc-store-frozen: codes "
           "have maxima for each parameter">,
  ];
}

def LayOutCodes : Pass<"tmc-lay-out-codes", "::tmc::train::StepOp"> {
  let summary = "codes of 8 bits in the order in which a card sums them";
  let description = [{
    A card's products of codes sum along what lies together in both factors. A
    factor that lies the other way is read turned, and what makes the codes
    writes them in both orders.

    Codes in blocks are quantized for each order anew, by one kernel that reads
    the values once (`nn.quantize_blocks`), and their scales are packed. A product
    in blocks that a card doesn't have is left alone.

    Before:

    ```mlir
    %q, %s = nn.quantize %x : (tensor<32x64xbf16>) -> (tensor<32x64xf8E4M3FN>, tensor<f32>)
    %y = nn.matmul %q, %w transpose_rhs scales(%s, %r) : (tensor<32x64xf8E4M3FN>, tensor<16x64xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x16xbf16>
    %g = nn.matmul %q, %d transpose_lhs transpose_rhs scales(%s, %e) : (tensor<32x64xf8E4M3FN>, tensor<16x32xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<64x16xf32>
    ```

    After:

    ```mlir
    %q, %s, %t = nn.quantize_both %x : (tensor<32x64xbf16>) -> (tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<64x32xf8E4M3FN>)
    %y = nn.matmul %q, %w transpose_rhs scales(%s, %r) : (tensor<32x64xf8E4M3FN>, tensor<16x64xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x16xbf16>
    %g = nn.matmul %t, %d transpose_rhs scales(%s, %e) : (tensor<64x32xf8E4M3FN>, tensor<16x32xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<64x16xf32>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect"];
}

def Raise : Pass<"tmc-raise", "::mlir::func::FuncOp"> {
  let summary = "put together what an exporter took apart";
  let description = [{
    Recognises attention, layer_norm, rms_norm, rotary_embedding, softmax, gelu
    and cross_entropy in the pieces that exporters write, by structure alone:
    factors before or after, operands either way round, masks added or chosen,
    constant, compared from positions or given as inputs. Transposes go into the flags of products,
    or cancel: nn.attention reads the projections as they lie in memory. A
    matmul takes the bias that is added to it.

    Before:

    ```mlir
    %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
    %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
    %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
    %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
    %f = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
    %t = arith.mulf %s, %f : tensor<2x4x8x8xf32>
    %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
    ```

    After:

    ```mlir
    %r, %lse = nn.attention %q, %k, %v {scale = 2.5e-01 : f64}
        : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>)
        -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
    ```

    A softmax between two batched products that stays in pieces gets a warning
    that says why.

    Numbers of at most -10000 that are added to scores, or take their place,
    forbid a key as minus infinity does. Of a query that may see no key at all
    the pieces would make the mean of all values; nn.attention gives zeros.
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"lossChunk", "loss-chunk", "int64_t", /*default=*/"0",
           "Rows of logits that a loss may hold at once; 0 holds all">,
    Option<"lossChunkIfFree", "loss-chunk-if-free", "bool", /*default=*/"false",
           "Only where chunks cost nothing: nothing but the function's return "
           "reads the loss, so that one kernel makes it and its gradient, and "
           "there are as many rows as channels, or the table's gradient is a "
           "sum over micro-batches, to which a chunk can add">,
    Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
           "Pieces that the batch will be cut into, for what is free">,
  ];
}

def Layout : Pass<"tmc-layout", "::mlir::func::FuncOp"> {
  let summary = "convolutions, pools and batch norms with channels last";
  let description = [{
    Only channels-last images have kernels. Each convolution, pool and batch norm
    reads and writes [N, H, W, C]; transposes move through pointwise work,
    concatenations, pads, slices and reductions until they cancel. Filters and
    parameters stay as they are.

    Before:

    ```mlir
    %y = nn.conv %x, %w {...} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
    %z = arith.maximumf %y, %zero : tensor<2x4x8x8xf32>
    %p = nn.max_pool %z {...} : (tensor<2x4x8x8xf32>) -> tensor<2x4x4x4xf32>
    ```

    After, with transposes of %x and %p only:

    ```mlir
    %t = nn.transpose %x [0, 2, 3, 1] : (tensor<2x3x8x8xf32>) -> tensor<2x8x8x3xf32>
    %y = nn.conv %t, %w {channels_last, ...} : (tensor<2x8x8x3xf32>, tensor<4x3x1x1xf32>) -> tensor<2x8x8x4xf32>
    %z = arith.maximumf %y, %zero : tensor<2x8x8x4xf32>
    %p = nn.max_pool %z {channels_last, ...} : (tensor<2x8x8x4xf32>) -> tensor<2x4x4x4xf32>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

def Cut : Pass<"tmc-cut", "::mlir::ModuleOp"> {
  let summary = "make the forward function that of one of several ranks that "
                "share heads and hidden columns";
  let description = [{
    Finds, by the cuts that ops list, the parts of `@forward` that ranks can
    share along a dimension of parameters (passes/Bundles.h): the hidden columns
    between two products, heads of attention, channels between convolutions.
    `@forward` becomes the function of one rank. Its pieces of parameters are
    arguments with `train.cut`. A value that all ranks read whole gets
    `nn.spread` if it depends on parameters, and a sum of all ranks' parts `nn.sum_over`. A bias of such a
    sum is added behind it, once.

    Dropout within heads draws the numbers of one device. Where there is some,
    `@forward` takes its number among the ranks as the argument `tensor_place`.

    It is an error if nothing can be shared, with the reasons.

    Before:

    ```mlir
    func.func @forward(..., %w1: tensor<4x16xf32> {...},
                       %b1: tensor<16xf32> {...}, %w2: tensor<16x4xf32> {...},
                       %b2: tensor<4xf32> {...}, ...)
      %x = nn.rms_norm ... -> tensor<8x4xf32>
      %h = nn.matmul %x, %w1 bias(%b1) : ... -> tensor<8x16xf32>
      %a = math.tanh %h : tensor<8x16xf32>
      %y = nn.matmul %a, %w2 bias(%b2) : ... -> tensor<8x4xf32>
    ```

    After `-tmc-cut=ranks=2`:

    ```mlir
    func.func @forward(...,
                       %w1: tensor<4x8xf32> {train.cut = #train.cut<tensor<4x16xf32>, dim 1, runs 1>, ...},
                       %b1: tensor<8xf32> {...}, %w2: tensor<8x4xf32> {...},
                       %b2: tensor<4xf32> {...}, ...) attributes {train.tensor_ranks = 2 : i64}
      %x = nn.rms_norm ... -> tensor<8x4xf32>
      %e = nn.spread %x over tp of 2 : tensor<8x4xf32>
      %h = nn.matmul %e, %w1 bias(%b1) : ... -> tensor<8x8xf32>
      %a = math.tanh %h : tensor<8x8xf32>
      %p = nn.matmul %a, %w2 : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %s = nn.sum_over %p over tp of 2 : tensor<8x4xf32>
      %b = nn.broadcast %b2 to [1] : (tensor<4xf32>) -> tensor<8x4xf32>
      %y = arith.addf %s, %b : tensor<8x4xf32>
    ```
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", /*default=*/"1",
           "Ranks that heads and hidden columns are dealt to">,
  ];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::tmc::train::TrainDialect"];
}

def Split : Pass<"tmc-split", "::mlir::ModuleOp"> {
  let summary = "make the forward function that of one micro-batch";
  let description = [{
    Cuts dimension 0 of every batch argument into `micro-batches` equal pieces,
    or, where they can't be equal, as many but for a smaller last one: of 5 in 3
    pieces two have 2 samples and one has 1. `@forward` becomes the function of
    an equal piece, `@rest` that of the last. Where fewer pieces of that size
    hold all samples, fewer are made, with a warning.

    Ops say how they are cut; one that can't be is an error, as is a batch norm,
    unless `batch-norm` says whose statistics it takes: those of each piece, which
    move the running ones in turn, with `train.decay` naming what of those is
    left; or the running ones, which stay as they are. The loss must be a sum over the batch, so that the pieces' losses add
    up to exactly that of the whole. What of the whole batch isn't linear in such
    sums (one over the count of labels) is computed once by `@prologue`, and the
    body takes it as further arguments of role `scalar`.

    With `ranks`, `@forward` becomes the function of one rank of a mesh first. It
    takes the rank's equal part of each batch argument and makes the rank's part
    of the loss. There is no prologue: a number of the whole batch is made of
    sums over the ranks (`nn.sum_over`). `train.ranks` says how many they are.

    Before, with a batch of 8:

    ```mlir
    func.func @forward(%x: tensor<8x4xf32> {train.role = #train.role<batch>, ...}, ...)
      %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
    ```

    After `-tmc-split=micro-batches=2`:

    ```mlir
    func.func @forward(%x: tensor<4x4xf32> {train.role = #train.role<batch>, ...}, ...)
        attributes {train.micro_batches = 2 : i64}
      %h = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    ```

    Results that lie side by side keep their place, with `train.concat` naming
    the dimension; further sums are dropped. With 1 nothing changes.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
           "Pieces that the batch is cut into">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"1",
           "Ranks that the batch is dealt to, before it is cut">,
    Option<"batchNorm", "batch-norm", "std::string", /*default=*/"\"\"",
           "What normalizes a piece of the batch: its own statistics "
           "(per-micro-batch) or the running ones (frozen, of the whole batch, "
           "too); empty: nothing">,
  ];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def Tile : Pass<"tmc-tile", "::mlir::func::FuncOp"> {
  let summary = "compute what lies between wide products by tiles of rows";
  let description = [{
    Where a product makes rows longer (an MLP's first one) and others end what
    is made of them row by row, all that is computed in `tiles` parts of the
    rows, of which the last may be smaller. Of the long rows a plan then needs to
    hold a tile's alone, forward and, made again, backward. Rows that something
    else reads, as attention does, stay whole.

    No number changes but gradients of what all rows share, which add up tile by
    tile, the last tile first.

    Before:

    ```mlir
    %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %a = nn.gelu %h {tanh} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = nn.matmul %a, %v : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    ```

    After `-tmc-tile=tiles=2`:

    ```mlir
    %x0 = nn.slice %x [0, 0] step [1, 1] : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %h0 = nn.matmul %x0, %w : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %a0 = nn.gelu %h0 {tanh} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %y0 = nn.matmul %a0, %v : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %x1 = nn.slice %x [4, 0] step [1, 1] : (tensor<8x4xf32>) -> tensor<4x4xf32>
    ...
    %y = nn.concat %y0, %y1 {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let options = [
    Option<"tiles", "tiles", "int64_t", /*default=*/"1",
           "Parts that the rows are computed in">,
  ];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

def CopyViews : Pass<"tmc-copy-views"> {
  let summary = "copy a view where a kernel wants contiguous bytes";
  let description = [{
    After it every operand of a kernel is contiguous, or strided where the kernel
    takes strides, and every view is one. In a micro-batch loop, what a kernel
    can't write over the value of the trip before is copied there; so is the new
    value of a state over the old one, where its kernel can't write it there or
    something reads the old value afterwards. Each `nn.copy` costs a launch; the
    report counts them.
  }];
  let dependentDialects = ["::tmc::nn::NNDialect"];
}

def VerifyKernels : Pass<"tmc-verify-kernels"> {
  let summary = "refuse element types that no kernel takes";
  let description = [{
    Asks every op that one kernel executes whether the target's kernel has code
    for its element types, and names all that don't in one refusal. What passes
    it is refused by no kernel when the step starts.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the step is compiled for">,
  ];
}

def ChooseAttention : Pass<"tmc-choose-attention"> {
  let summary = "choose between own attention and cuDNN's";
  let description = [{
    For a card, marks the attentions and gradients of attention that cuDNN
    computes. `attention` is `own` (none), `cudnn` (all that it can compute), or
    `auto`: those of which the target knows a measured time by cuDNN that is less
    than the own kernel's. The decision depends on the op's shape and type and on
    the target, never on the budget. A remark of the category `attention` says why
    an op stays own.

    Before:

    ```mlir
    %o, %l = nn.attention %q, %k, %v {causal, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
    ```

    After:

    ```mlir
    %o, %l = nn.attention %q, %k, %v {causal, nn.cudnn, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the step is compiled for">,
    Option<"attention", "attention", "std::string", /*default=*/"\"auto\"",
           "auto, own or cudnn">,
  ];
}

def Peel : Pass<"tmc-peel", "::tmc::train::StepOp"> {
  let summary = "give the last micro-batch a list of its own";
  let description = [{
    Takes the last trip out of the micro-batch loop, so that a plan with moves may
    order it by itself and begin updates in it. Of two trips no loop is left. The
    kernels are the loop's own, so no bit changes. What the last trip runs has
    `.last` behind its name. A loop on a part of the batch stays as it is: its last
    trip is elsewhere already.

    Before:

    ```mlir
    %g = train.micro_batch 3 slices(%x : tensor<6x4xf32>) -> tensor<4x5xf32> {
    ^bb0(%piece: tensor<2x4xf32>, %sum: tensor<4x5xf32>):
      ...
      %next = nn.matmul %piece, %dy transpose_lhs acc(%sum) : ...
      train.yield %next : tensor<4x5xf32>
    }
    ```

    After:

    ```mlir
    %head = nn.slice %x [0, 0] step [1, 1] : (tensor<6x4xf32>) -> tensor<4x4xf32>
    %piece = nn.slice %x [4, 0] step [1, 1] : (tensor<6x4xf32>) -> tensor<2x4xf32>
    %sum = train.micro_batch 2 slices(%head : tensor<4x4xf32>) -> tensor<4x5xf32> {
      ...
    }
    ...
    %g = nn.matmul %piece, %dy transpose_lhs acc(%sum) : ...
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

def Plan : Pass<"tmc-plan", "::tmc::train::StepOp"> {
  let summary = "order the step and recompute until it fits its budget";
  let description = [{
    States the step as a planning problem (`compiler/analysis/StepProblem.h`),
    solves it, has the answer verified, and writes it into the IR: the order of
    the ops is the schedule, a recomputation is a cloned op, `train.instance`
    numbers the executions of each op. The plan's figures become the attribute
    `train.plan`. Fails, with the smallest budget for which a plan is known, if
    none within the budget is found.

    What may leave the device is planned as well: a copy to the host or back is a
    pair of ops, its start and its done, an update may run on the host, and the
    types of the step's arguments say where parameters and moments are at home.
  }];
  let options = [
    Option<"budget", "budget", "int64_t", /*default=*/"-1",
           "Bytes that the device may hold, reserved ones included; -1: no limit">,
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the step is planned for">,
    Option<"quick", "quick", "bool", /*default=*/"false",
           "Look for no bound and no frontier">,
    Option<"effort", "effort", "int64_t", /*default=*/"100",
           "Counted work, in percent of what is usual for the step's size">,
    Option<"offload", "offload", "std::string", /*default=*/"\"none\"",
           "What may leave the device: none, auto, all, or a list of "
           "activations, optimizer and parameters">,
    ListOption<"beside", "beside", "int64_t",
           "Bytes that it may take of each space beside the device, in the "
           "machine's order: host, file; -1: as many as the target has "
           "(default; 0 of a file)">,
  ];
}

def Lower : Pass<"tmc-lower", "::mlir::ModuleOp"> {
  let summary = "turn tensors into buffers, and ops into launches";
  let description = [{
    Each value that owns storage becomes a `mem.buffer`; values that overwrite
    one another share it. Views become `mem.view`. The bodies of fused ops
    become `mem.kernel`s, one for each different body.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the step is compiled for">,
  ];
  let dependentDialects = ["::tmc::mem::MemDialect"];
}

def JoinUpdates : Pass<"tmc-join-updates", "::tmc::mem::ProgramOp"> {
  let summary = "make updates that stand side by side one launch";
  let description = [{
    Each run of a kernel on cuda takes some microseconds, whatever it does, and a
    model has many small parameters. Updates of one kind that stand side by side
    become one launch over a table of their operands, of at most
    `kMostJoinedUpdates` (`runtime/kernels/Optimizer.h`).

    Operands of joined updates are alive together. Where that would raise the
    live peak, or the arena by more than `arenaRoom`
    (`compiler/planning/driver/GatherUpdates.h`), fewer updates are joined.

    Before:

    ```mlir
    mem.launch "AdamW"(%w, %dw, ...) -> (%w, ...) {device_launches = 1, ...}
    mem.launch "AdamW"(%b, %db, ...) -> (%b, ...) {device_launches = 2, ...}
    ```

    After:

    ```mlir
    mem.launch "AdamW"(%w, %dw, ...) -> (%w, ...) {device_launches = 2, joins_next, ...}
    mem.launch "AdamW"(%b, %db, ...) -> (%b, ...) {device_launches = 0, ...}
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"64",
           "Of every offset, in bytes; a power of two">,
    Option<"effort", "effort", "int64_t", /*default=*/"100",
           "Counted work of the packing, in percent of the default">,
    Option<"seed", "seed", "int64_t", /*default=*/"1",
           "Another packing">,
    Option<"arenaLimit", "arena-limit", "int64_t", /*default=*/"-1",
           "Bytes of the device's arena that joining must not exceed; -1: no limit">,
  ];
}

def Place : Pass<"tmc-place", "::tmc::mem::ProgramOp"> {
  let summary = "give every buffer its place in the arena";
  let description = [{
    Packs the buffers by their lifetimes, has the packing verified, and writes
    the offsets and the arena's size. The live peak counted here, from buffers
    and launches alone, must be the one that the plan promised.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"64",
           "Of every offset, in bytes; a power of two">,
    Option<"effort", "effort", "int64_t", /*default=*/"100",
           "Counted work of the packing, in percent of the default">,
    Option<"seed", "seed", "int64_t", /*default=*/"1",
           "Another packing">,
  ];
}

def VerifySchedule : Pass<"tmc-verify-schedule", "::tmc::mem::ProgramOp"> {
  let summary = "prove that engines never meet in a byte";
  let description = [{
    Unrolls a placed program, gives its entries vector clocks from its records
    and waits, and looks at every access to every byte
    (`compiler/analysis/ScheduleCheck.h`): it comes after what wrote the byte,
    before what overwrites it, and reads what its buffer holds, around the end of
    the step, too. Knows nothing of the plan, changes nothing. What it finds is a
    defect of tmc.
  }];
}

def VerifyRanks : Pass<"tmc-verify-ranks", "::mlir::ModuleOp"> {
  let summary = "prove that ranks agree in all that they exchange";
  let description = [{
    Reads the placed programs of all ranks of a mesh, a program for each stage of
    a pipeline, and proves (`compiler/analysis/RankCheck.h`): all ranks of a
    group make the same calls in one order, with equal types and bytes; no ranks
    wait for each other; the pieces of ranks are the whole, each byte once; each
    engine waits for a call before it touches the call's bytes. Knows nothing of
    the plan, changes nothing. What it finds is a defect of tmc.
  }];
  let options = [
    Option<"data", "data", "int64_t", /*default=*/"0",
           "Ranks of the axis dp; 0: those of the calls over it">,
    Option<"tensor", "tensor", "int64_t", /*default=*/"0",
           "Ranks of the axis tp; 0: those of the calls over it">,
    Option<"pipeline", "pipeline", "int64_t", /*default=*/"0",
           "Ranks of the axis pp; 0: the number of programs">,
  ];
}

def VerifyPhase : Pass<"tmc-verify-phase", "::mlir::ModuleOp"> {
  let summary = "check what must hold at the end of a phase";
  let description = [{
    | phase | what holds |
    |---|---|
    | import, raise, split, layout | arguments of @forward have roles, its loss is one scalar |
    | autodiff, precision | one step; each trained parameter and optimizer state has one new value |
    | shape | ops are kernels, views, constants or the loop; fused regions have kernels |
    | plan | kernels carry their instance; recomputed ops are those of the plan; what an update overwrites isn't read after it |
    | lower | nothing but mem; kernels exist; buffers are written before they are read |
    | place | offsets are aligned, inside the arena, and apart where lifetimes meet; the live peak is the plan's |

    Each includes what the phases of the same IR before it leave. Changes
    nothing. What it finds is a defect of tmc.
  }];
  let options = [
    Option<"phase", "phase", "std::string", /*default=*/"\"\"",
           "The phase that has just ended">,
    Option<"alignment", "alignment", "int64_t", /*default=*/"64",
           "Of every offset, in bytes; a power of two">,
  ];
}

def PadRows : Pass<"tmc-pad-rows", "::mlir::func::FuncOp"> {
  let summary = "give logits rows of whole 16 bytes";
  let description = [{
    Pads the classes of a cross-entropy whose logits a product makes, with rows
    of zeros behind its table, to a multiple of 8, or of 64 where that adds
    little. `narrow` says that f32 factors will be multiplied in 16 bits or
    TF32; without it only products of 16 bits are padded. For backends whose
    tensor cores want such rows (cuda).

    Before:

    ```mlir
    %l = nn.matmul %x, %t transpose_rhs : (tensor<8x16xbf16>, tensor<1001x16xbf16>) -> tensor<8x1001xbf16>
    %loss, %lse = nn.cross_entropy %l, %y, %w : (tensor<8x1001xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
    ```

    After:

    ```mlir
    %p = nn.pad %t [0, 0] step [1, 1] : (tensor<1001x16xbf16>) -> tensor<1008x16xbf16>
    %l = nn.matmul %x, %p transpose_rhs : (tensor<8x16xbf16>, tensor<1008x16xbf16>) -> tensor<8x1008xbf16>
    %loss, %lse = nn.cross_entropy %l, %y, %w {vocabulary = 1001 : i64} : (tensor<8x1008xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect"];
  let options = [
    Option<"narrow", "narrow", "bool", /*default=*/"false",
           "f32 factors will be multiplied in 16 bits or TF32">,
  ];
}

def WidenComposites : Pass<"tmc-widen-composites", "::mlir::func::FuncOp"> {
  let summary = "compute norms, softmax and GELU of narrow tensors in f32";
  let description = [{
    Of layer_norm, rms_norm, softmax, gelu and batch_norm on 16- or 8-bit tensors
    the operands are widened and the results rounded once. Before autodiff, so
    that their gradients are f32 inside, too.

    Before:

    ```mlir
    %y = nn.rms_norm %x {epsilon = 1.0e-6 : f64} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
    ```

    After:

    ```mlir
    %wide = arith.extf %x : tensor<4x8xbf16> to tensor<4x8xf32>
    %inner = nn.rms_norm %wide {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = arith.truncf %inner : tensor<4x8xf32> to tensor<4x8xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def Shard : Pass<"tmc-shard", "::tmc::train::StepOp"> {
  let summary = "cut updates, moments and parameters among the ranks";
  let description = [{
    For steps of several ranks. A gradient's sum over them becomes an exchange
    and a sum of this rank's pieces (dialects/nn/Ranks.td), and the norm that of
    the shards. What then happens to a parameter with at least 4,096 elements for
    each rank is its `level`, as the stages of ZeRO:

    - 0: each rank gathers the gradient and updates the whole.
    - 1, 2: a rank keeps its shard of the moments, updates its shard of the
      parameter, and all gather the new one.
    - 3: a rank keeps its shard of the parameter, too, which readers gather. The
      first parameters that the step reads, `whole` of them, stay whole as at
      level 2: nothing hides their gathers.

    With `copies` a rank keeps a whole parameter in 16 bits, if all that read it
    round it, and its shard of the f32 one: the new shards are rounded and
    gathered.

    Sums of small values that nothing else waits for become one, of the values
    side by side.

    Micro-batches add up whole gradients, whose sums are exchanged, or with
    `shards` the shards, which take fewer bytes and more messages.

    `train.whole` of an argument that is a shard is the type of the whole. The
    levels give the same bits. Updates that draw numbers, and Adafactor's, are
    always whole.

    Before:

    ```mlir
    train.step @step(%w: tensor<128x128xf32> {...}, %m: tensor<128x128xf32> {...}, ...)
        attributes {train.ranks = 2 : i64} {
      %G = nn.sum_over %g over dp of 2 : tensor<128x128xf32>
      %p, %n, %q = train.sgd %w, %G momentum(%m) lr(%lr) step(%t) {...} : ...
      train.return %p, %n : tensor<128x128xf32>, tensor<128x128xf32>
    ```

    After, of level 2:

    ```mlir
    train.step @step(%w: tensor<128x128xf32> {...},
                     %m: tensor<8192xf32> {train.whole = tensor<128x128xf32>, ...}, ...)
        attributes {train.ranks = 2 : i64} {
      %a = nn.exchange %g over dp of 2 : tensor<128x128xf32>
      %G = nn.sum_pieces %a : tensor<2x8192xf32>
      %s = nn.shard_of %w over dp of 2 : tensor<128x128xf32>
      %p, %n, %q = train.sgd %s, %G momentum(%m) lr(%lr) step(%t) {...} : ...
      %v = nn.gather %p over dp of 2 : tensor<8192xf32> to tensor<128x128xf32>
      train.return %v, %n : tensor<128x128xf32>, tensor<8192xf32>
    ```
  }];
  let options = [
    Option<"level", "level", "int64_t", /*default=*/"2",
           "0: nothing is cut; 1, 2: moments; 3: parameters, too">,
    Option<"whole", "whole", "int64_t", /*default=*/"0",
           "At level 3, the number of first-read parameters that stay whole">,
    Option<"shards", "shards", "bool", /*default=*/"false",
           "Micro-batches add up shards of gradients, exchanged in each trip">,
    Option<"copies", "copies", "bool", /*default=*/"false",
           "Keep 16-bit copies of whole parameters in place of f32 ones">,
  ];
  let dependentDialects = ["::tmc::nn::NNDialect"];
}

def ExpandComposites : Pass<"tmc-expand-composites"> {
  let summary = "take norms, softmax and GELU apart";
  let description = [{
    layer_norm, rms_norm, batch_norm, softmax and gelu have derivatives but no
    kernels: here they become pointwise ops and reductions, which fuse with what
    is around them. A batch norm keeps a kernel for its statistics, which reads
    the input once; its gradient becomes two sums over rows and pointwise ops.

    Before:

    ```mlir
    %y = nn.rms_norm %x {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```

    After:

    ```mlir
    %eighth = arith.constant dense<1.25e-01> : tensor<4xf32>
    %epsilon = arith.constant dense<1.0e-6> : tensor<4xf32>
    %square = arith.mulf %x, %x : tensor<4x8xf32>
    %sum = nn.reduce sum %square over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    %mean = arith.mulf %sum, %eighth : tensor<4xf32>
    %more = arith.addf %mean, %epsilon : tensor<4xf32>
    %rstd = math.rsqrt %more : tensor<4xf32>
    %factor = nn.broadcast %rstd to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
    %y = arith.mulf %x, %factor : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def RoundAsRead : Pass<"tmc-round-as-read"> {
  let summary = "let products round the parameters that they read";
  let description = [{
    A parameter in f32 is there in any case. Where a product multiplies it in 16
    bits beside a factor that has them, it can be rounded as it is read, to the
    same bits, and no narrow copy of it has to be made and kept: all parameters
    on cpu, on cards the filters of convolutions, which are packed in any case.

    Before:

    ```mlir
    %n = arith.truncf %w : tensor<4x6xf32> to tensor<4x6xbf16>
    %y = nn.matmul %x, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
    ```

    After:

    ```mlir
    %y = nn.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x6xf32>) -> tensor<8x6xbf16>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the step is compiled for">,
  ];
}

def DequantizeAsRead : Pass<"tmc-dequantize-as-read"> {
  let summary = "let products decode the frozen weights that they read";
  let description = [{
    A product packs its factors in any case, and decodes a panel of codes as it
    does, to the same bits. If each reader of a decoded weight is such a product,
    the weight is never written to memory. For the cpu.

    Before:

    ```mlir
    %w = nn.dequantize %q, %a : (tensor<4096xi8>, tensor<128xf32>) -> tensor<64x128xbf16>
    %y = nn.matmul %x, %w transpose_rhs : (tensor<8x128xbf16>, tensor<64x128xbf16>) -> tensor<8x64xbf16>
    ```

    After:

    ```mlir
    %y = nn.matmul_codes %x, %q, %a transpose_rhs : (tensor<8x128xbf16>, tensor<4096xi8>, tensor<128xf32>) -> tensor<8x64xbf16>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect"];
}

def KeepCopies : Pass<"tmc-keep-copies", "::tmc::train::StepOp"> {
  let summary = "let updates write the narrow copies that products read";
  let description = [{
    A product may read a parameter in 16 bits, as a factor or a bias, that is
    kept in 32. The update writes that copy, too, into a state of the step, and no step begins
    with casts. It costs two bytes for each element of the parameter, all the
    time. A cast that no product reads stays, and so does one to a second type.
    For backends whose products don't round what they read (cuda).

    Before:

    ```mlir
    train.step @step(%w: tensor<4x6xf32> {train.name = "w", ...}, ...) {
      %n = arith.truncf %w : tensor<4x6xf32> to tensor<4x6xbf16>
      %y = nn.matmul %x, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
      ...
      %p, %q = train.sgd %w, %g lr(%lr) step(%t) {...} : ...
      train.return %p : tensor<4x6xf32>
    ```

    After:

    ```mlir
    train.step @step(%w: tensor<4x6xf32> {train.name = "w", ...}, ...,
                     %n: tensor<4x6xbf16> {train.name = "w.bf16", train.copy_of = "w", ...}) {
      %y = nn.matmul %x, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
      ...
      %p, %m, %q = train.sgd %w, %g lr(%lr) step(%t) copy(%n) {...} : ...
      train.return %p, %m : tensor<4x6xf32>, tensor<4x6xbf16>
    ```
  }];
}

def FoldIntoKernels : Pass<"tmc-fold-into-kernels"> {
  let summary = "hand kernels what they do for nothing, and drop what nobody needs";
  let description = [{
    A matmul adds onto the bytes of a sum that no other op reads, as does
    embedding_grad. Four or more products of one sum, of at most 64 numbers
    each, become one (`StackProducts.h`). A loss in chunks is computed with its
    gradient, which needs the same logits; a whole one reads 16-bit logits as
    they are, and its gradient rounds what it makes. Neutral elements,
    transposes of transposes, reshapes of reshapes, sums of repetitions vanish;
    powers become products and roots; a reduction over outer and inner
    dimensions becomes one of rows and one of columns; the derivative of relu
    asks its result, not its operand.

    Before:

    ```mlir
    %p = nn.matmul %x, %v : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %q = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %y = arith.addf %p, %q : tensor<8x6xf32>
    ```

    After:

    ```mlir
    %p = nn.matmul %x, %v : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %y = nn.matmul %x, %w acc(%p)
        : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def Fuse : Pass<"tmc-fuse"> {
  let summary = "make groups of pointwise work and reductions into one op each";
  let description = [{
    Every pointwise op, broadcast, reduction, iota and random op comes to stand
    in an `nn.fused`, with as many of its neighbours as one kernel can do
    (`dialects/nn/FusedPlan.h`) without another op in between. Cheap producers
    that read next to nothing (random numbers, comparisons of them, broadcasts)
    are made in each kernel that reads them. A kernel makes pointwise values of
    another again where fewer bytes then stay alive.

    Before:

    ```mlir
    %s = arith.addf %x, %y : tensor<8x4xf32>
    %t = math.tanh %s : tensor<8x4xf32>
    ```

    After:

    ```mlir
    %t = nn.fused (%a = %x, %b = %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
      %s = arith.addf %a, %b : tensor<8x4xf32>
      %u = math.tanh %s : tensor<8x4xf32>
      nn.yield %u : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::tmc::nn::NNDialect"];
}

#endif // TMC_PASSES_PASSES_TD
