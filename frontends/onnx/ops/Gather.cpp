// Gather.cpp - elements chosen by index.

#include "frontends/Checked.h"
#include "frontends/onnx/TorchCall.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// `indices` with negative ones counted from the end of `size`; an error where
/// one lies outside.
static FailureOr<std::vector<int64_t>> resolved(Node &n, const Array &indices,
                                                int64_t size) {
  std::vector<int64_t> list = indices.ints();
  for (int64_t &at : list) {
    if (at < -size || at >= size)
      return n.error("reads entry " + Twine(at) + " of " + Twine(size));
    if (at < 0)
      at += size;
  }
  return list;
}

/// Elements of `data` at linear positions `at`.
static Array picked(const Array &data, ArrayRef<int64_t> dims,
                    ArrayRef<int64_t> at) {
  if (isFloat(data.type())) {
    std::vector<double> all = data.floats(), out;
    out.reserve(at.size());
    for (int64_t i : at)
      out.push_back(all[i]);
    return Array::ofFloats(data.type(), dims, std::move(out)).compressed();
  }
  std::vector<int64_t> all = data.ints(), out;
  out.reserve(at.size());
  for (int64_t i : at)
    out.push_back(all[i]);
  return Array::ofInts(data.type(), dims, std::move(out)).compressed();
}

static Dims gatheredDims(ArrayRef<int64_t> data, ArrayRef<int64_t> indices,
                         int64_t axis) {
  Dims dims(data.take_front(axis));
  dims.append(indices.begin(), indices.end());
  dims.append(data.begin() + axis + 1, data.end());
  return dims;
}

static LogicalResult foldGather(Node &n, int64_t axis, ArrayRef<int64_t> dims) {
  ASSIGN_OR_FAIL(Array data, n.array(0));
  ASSIGN_OR_FAIL(Array indices, n.array(1));
  ASSIGN_OR_FAIL(std::vector<int64_t> list,
                 resolved(n, indices, data.dims()[axis]));
  int64_t outer = 1, inner = 1, size = data.dims()[axis];
  for (int64_t i = 0; i < data.rank(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : data.dims()[i];
  std::vector<int64_t> at;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : list)
      for (int64_t k = 0; k < inner; ++k)
        at.push_back((o * size + i) * inner + k);
  return n.set(picked(data, dims, at));
}

/// The start of `list` if it counts up by one, as a slice does.
static std::optional<int64_t> asRun(ArrayRef<int64_t> list) {
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i] != list[i - 1] + 1)
      return std::nullopt;
  if (list.empty())
    return std::nullopt;
  return list[0];
}

/// The entries of `table` along `axis` that `indices` name.
static FailureOr<Value> entries(Node &n, Value table, int64_t axis,
                                const Val &indices) {
  ArrayRef<int64_t> data = nn::tensorType(table).getShape();
  int64_t rank = data.size();
  // Known indices in a row are a slice.
  if (indices.isConst()) {
    ASSIGN_OR_FAIL(Array known, n.arrayOf(indices));
    if (known.size() <= data[axis]) {
      ASSIGN_OR_FAIL(std::vector<int64_t> list, resolved(n, known, data[axis]));
      if (auto start = asRun(list)) {
        Dims offsets(rank, 0), box(data);
        offsets[axis] = *start;
        box[axis] = list.size();
        Value piece = table;
        if (ArrayRef<int64_t>(box) != data)
          piece = nn::SliceOp::create(
              n.b, n.loc,
              n.tensorType(box, nn::tensorType(table).getElementType()), table,
              offsets, Dims(rank, 1));
        return n.reshape(piece, gatheredDims(data, indices.dims, axis));
      }
    }
  }
  ASSIGN_OR_FAIL(Value ids, n.materialise(indices));
  if (axis == 0)
    return Value(nn::EmbeddingOp::create(n.b, n.loc, table, ids));
  // Bring the axis to the front, look up, and put the indices' dimensions back.
  Dims perm{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      perm.push_back(i);
  Value front = nn::TransposeOp::create(n.b, n.loc, table, perm);
  Value rows = nn::EmbeddingOp::create(n.b, n.loc, front, ids);
  Dims back;
  for (int64_t i = 0; i < axis; ++i)
    back.push_back(indices.rank() + i);
  for (int64_t i = 0; i < indices.rank(); ++i)
    back.push_back(i);
  for (int64_t i = axis + 1; i < rank; ++i)
    back.push_back(indices.rank() + i - 1);
  return Value(nn::TransposeOp::create(n.b, n.loc, rows, back));
}

/// The id whose row of the table gets no gradient from this lookup: PyTorch's
/// padding_idx, which ONNX has no place for but the exporter's note.
static std::optional<int64_t> paddingOf(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (!call || !call->calls("aten.embedding"))
    return std::nullopt;
  std::optional<double> id = call->number(2, "padding_idx");
  return id && *id >= 0 ? std::optional<int64_t>(*id) : std::nullopt;
}

/// `rows`, the rows that `ids` chose, with those of `id` detached.
static Value withoutGradientAt(Node &n, Value rows, Value ids, int64_t id) {
  Value isPadding = arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::eq,
                                          ids, like(n.b, n.loc, ids, id));
  auto type = nn::tensorType(rows);
  auto wide = n.tensorType(type.getShape(), n.b.getI1Type());
  Value chosen = nn::broadcastTo(n.b, n.loc, isPadding, wide,
                                 nn::firstDims(nn::tensorType(ids).getRank()));
  Value detached = nn::DetachOp::create(n.b, n.loc, rows);
  return arith::SelectOp::create(n.b, n.loc, chosen, detached, rows);
}

static LogicalResult importGather(Node &n) {
  const Val data = n.input(0), indices = n.input(1);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), data.rank()));
  if (isFloat(indices.type))
    return n.error("indices of type " + nameOf(indices.type));
  Dims dims = gatheredDims(data.dims, indices.dims, axis);
  auto count = checkedNumElements(dims);
  if (!count)
    return n.error("the number of elements is too large");
  if (n.foldable({0, 1}) && *count <= kMaxFoldElements)
    return foldGather(n, axis, dims);

  ASSIGN_OR_FAIL(Value table, n.value(0));
  if (!n.foldable(1)) {
    ASSIGN_OR_FAIL(Value found, entries(n, table, axis, indices));
    if (auto padding = paddingOf(n)) {
      ASSIGN_OR_FAIL(Value ids, n.value(1));
      found = withoutGradientAt(n, found, ids, *padding);
    }
    return n.set(found);
  }
  // Positions and types of tokens are the same for every sample: look up what
  // differs, and repeat it.
  ASSIGN_OR_FAIL(Array known, n.array(1));
  Dims kept;
  Array part = known.compressed().unrepeated(kept);
  if (part.size() == 0)
    return n.unsupported("a gather of nothing");
  std::vector<int64_t> list;
  ASSIGN_OR_FAIL(list, resolved(n, part, data.dims[axis]));
  Val distinct(Array::ofInts(ElementType::I64, part.dims(), list));
  ASSIGN_OR_FAIL(Value found, entries(n, table, axis, distinct));
  Dims withOnes(indices.rank(), 1);
  for (int64_t dim : kept)
    withOnes[dim] = indices.dims[dim];
  found = n.reshape(found, gatheredDims(data.dims, withOnes, axis));
  ASSIGN_OR_FAIL(Value wide, n.broadcast(Val(found), dims));
  return n.set(wide);
}
static Register gather("Gather", importGather);

/// result[..i..] = data[.. indices[..i..] ..] along one axis.
static LogicalResult importGatherElements(Node &n) {
  const Val data = n.input(0), indices = n.input(1);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), data.rank()));
  bool fits = data.rank() == indices.rank() && !isFloat(indices.type);
  for (int64_t i = 0; fits && i < data.rank(); ++i)
    fits = i == axis || indices.dims[i] <= data.dims[i];
  if (!fits)
    return n.error("indices of shape " + str(indices.dims) +
                   " for a tensor of shape " + str(data.dims));
  if (n.foldable({0, 1})) {
    ASSIGN_OR_FAIL(Array from, n.array(0));
    ASSIGN_OR_FAIL(Array at, n.array(1));
    if (at.size() <= kMaxFoldElements && from.size() <= kMaxFoldElements) {
      ASSIGN_OR_FAIL(std::vector<int64_t> list,
                     resolved(n, at, data.dims[axis]));
      Dims index(data.rank(), 0);
      std::vector<int64_t> linear;
      for (int64_t choice : list) {
        int64_t position = 0;
        for (int64_t d = 0; d < data.rank(); ++d)
          position = position * data.dims[d] + (d == axis ? choice : index[d]);
        linear.push_back(position);
        for (int64_t d = data.rank(); d-- > 0;) {
          if (++index[d] < indices.dims[d])
            break;
          index[d] = 0;
        }
      }
      return n.set(picked(from, indices.dims, linear));
    }
  }
  ASSIGN_OR_FAIL(Value table, n.value(0));
  ASSIGN_OR_FAIL(Value ids, n.value(1));
  OpBuilder &b = n.b;
  // Where the data don't vary in the other dimensions, this is a lookup in a
  // vector.
  if (n.input(0).isConst()) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    Dims kept;
    Array part = array.compressed().unrepeated(kept);
    if (part.rank() == 0)
      return n.set(part.reshaped({}).broadcastTo(indices.dims));
    if (kept.size() == 1 && kept[0] == axis) {
      ASSIGN_OR_FAIL(Value vector, n.materialise(Val(part)));
      return n.set(nn::EmbeddingOp::create(b, n.loc, vector, ids));
    }
  }
  // Otherwise: sum over j of (indices == j) * data[.. j ..].
  Dims box(indices.dims);
  box[axis] = data.dims[axis];
  if (box != data.dims)
    table = nn::SliceOp::create(
        b, n.loc, n.tensorType(box, nn::tensorType(table).getElementType()),
        table, Dims(data.rank(), 0), Dims(data.rank(), 1));
  // [.., I, ..] and [.., J, ..] side by side as [.., I, J, ..].
  Dims both(indices.dims), row(indices.dims), column(box);
  both.insert(both.begin() + axis + 1, data.dims[axis]);
  row.insert(row.begin() + axis + 1, 1);
  column.insert(column.begin() + axis, 1);
  Type idType = nn::tensorType(ids).getElementType();
  Value j = nn::IotaOp::create(b, n.loc, n.tensorType(both, idType), axis + 1);
  ASSIGN_OR_FAIL(Value i,
                 n.broadcast(Val(nn::reshapeTo(b, n.loc, ids, row)), both));
  ASSIGN_OR_FAIL(
      Value x, n.broadcast(Val(nn::reshapeTo(b, n.loc, table, column)), both));
  Value chosen =
      arith::CmpIOp::create(b, n.loc, arith::CmpIPredicate::eq, i, j);
  Value zeros = like(b, n.loc, x, 0);
  Value kept = arith::SelectOp::create(b, n.loc, chosen, x, zeros);
  return n.set(nn::reduceSum(b, n.loc, kept, {axis + 1}));
}
static Register gatherElements("GatherElements", importGatherElements);

/// Positions in `data`, whose first dimensions were made one, of the slices
/// that the rows of `list` choose.
static FailureOr<std::vector<int64_t>> rowsChosen(Node &n,
                                                  ArrayRef<int64_t> data,
                                                  ArrayRef<int64_t> list,
                                                  int64_t depth) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row + depth <= list.size(); row += depth) {
    int64_t position = 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t i = list[row + d], size = data[d];
      if (i < -size || i >= size)
        return n.error("reads entry " + Twine(i) + " of " + Twine(size));
      position = position * size + (i < 0 ? i + size : i);
    }
    rows.push_back(position);
  }
  return rows;
}

/// The same for indices that a step computes: the sum of index[d] times the
/// elements of a slice.
static Value rowsComputed(Node &n, Value ids, ArrayRef<int64_t> data,
                          int64_t depth, ArrayRef<int64_t> shape) {
  OpBuilder &b = n.b;
  auto type = nn::tensorType(ids);
  Dims box(type.getShape());
  box.back() = 1;
  int64_t stride = 1;
  for (int64_t d = 0; d < depth; ++d)
    stride *= data[d];
  Value position;
  for (int64_t d = 0; d < depth; ++d) {
    stride /= data[d];
    Dims offsets(type.getRank(), 0);
    offsets.back() = d;
    Value part =
        nn::SliceOp::create(b, n.loc, n.tensorType(box, type.getElementType()),
                            ids, offsets, Dims(type.getRank(), 1));
    part = n.reshape(part, shape);
    if (stride != 1)
      part =
          arith::MulIOp::create(b, n.loc, part, like(b, n.loc, part, stride));
    position = position ? Value(arith::AddIOp::create(b, n.loc, position, part))
                        : part;
  }
  return position;
}

/// Rows of indices choose slices of `data`, whose first dimensions they count.
static LogicalResult importGatherND(Node &n) {
  const Val data = n.input(0), indices = n.input(1);
  if (n.intAttr("batch_dims", 0))
    return n.unsupported("batch dimensions");
  int64_t depth = indices.rank() ? indices.dims.back() : 0;
  if (depth < 1 || depth > data.rank() || isFloat(indices.type))
    return n.error("indices of shape " + str(indices.dims) +
                   " for a tensor of shape " + str(data.dims));
  ArrayRef<int64_t> lead = ArrayRef<int64_t>(indices.dims).drop_back();
  ArrayRef<int64_t> rest = ArrayRef<int64_t>(data.dims).drop_front(depth);
  Dims dims(lead);
  dims.append(rest.begin(), rest.end());
  auto count = checkedNumElements(dims);
  auto inner = checkedNumElements(rest);
  auto rows =
      checkedNumElements(ArrayRef<int64_t>(data.dims).take_front(depth));
  if (!count || !inner || !rows || *rows == 0)
    return n.error("the number of elements is too large, or zero");
  Dims flat{*rows};
  flat.append(rest.begin(), rest.end());

  Value position;
  if (n.foldable(1)) {
    ASSIGN_OR_FAIL(Array at, n.array(1));
    if (at.size() > kMaxFoldElements)
      return n.unsupported("indices of shape " + str(indices.dims));
    std::vector<int64_t> list = at.ints();
    ASSIGN_OR_FAIL(std::vector<int64_t> chosen,
                   rowsChosen(n, data.dims, list, depth));
    if (n.foldable(0) && *count <= kMaxFoldElements) {
      ASSIGN_OR_FAIL(Array from, n.array(0));
      if (from.size() > kMaxFoldElements)
        return n.unsupported("a gather from shape " + str(data.dims));
      std::vector<int64_t> linear;
      for (int64_t row : chosen)
        for (int64_t k = 0; k < *inner; ++k)
          linear.push_back(row * *inner + k);
      return n.set(picked(from, dims, linear));
    }
    // Rows one after the other are a slice; all of them, another shape.
    ASSIGN_OR_FAIL(Value table, n.value(0));
    if (auto start = asRun(chosen)) {
      Dims box(flat), offsets(flat.size(), 0);
      box[0] = chosen.size();
      offsets[0] = *start;
      Value piece = n.reshape(table, flat);
      if (box != flat)
        piece = nn::SliceOp::create(
            n.b, n.loc,
            n.tensorType(box, nn::tensorType(table).getElementType()), piece,
            offsets, Dims(flat.size(), 1));
      return n.set(n.reshape(piece, dims));
    }
    ASSIGN_OR_FAIL(position, n.materialise(Val(Array::ofInts(
                                 ElementType::I64, lead, std::move(chosen)))));
  } else {
    ASSIGN_OR_FAIL(Value ids, n.value(1));
    position = rowsComputed(n, ids, data.dims, depth, lead);
  }
  ASSIGN_OR_FAIL(Value table, n.value(0));
  return n.set(
      nn::EmbeddingOp::create(n.b, n.loc, n.reshape(table, flat), position));
}
static Register gatherND("GatherND", importGatherND);

static LogicalResult importOneHot(Node &n) {
  const Val ids = n.input(0);
  ASSIGN_OR_FAIL(Dims depth, n.ints(1));
  ASSIGN_OR_FAIL(Array values, n.array(2));
  if (depth.size() != 1 || depth[0] < 1 || values.size() != 2)
    return n.error("wants one depth and two values");
  int64_t rank = ids.rank() + 1;
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), rank));
  Dims dims(ids.dims), column(ids.dims);
  dims.insert(dims.begin() + axis, depth[0]);
  column.insert(column.begin() + axis, 1);
  ASSIGN_OR_FAIL(Value index, n.value(0));
  if (isFloat(ids.type))
    return n.unsupported("indices of type " + nameOf(ids.type));
  Type element = irType(values.type(), n.b.getContext());
  if (!element)
    return n.unsupported("elements of type " + nameOf(values.type()));
  // Negative indices count from the end.
  Value fromEnd = arith::AddIOp::create(n.b, n.loc, index,
                                        like(n.b, n.loc, index, depth[0]));
  Value negative = arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::slt,
                                         index, like(n.b, n.loc, index, 0));
  index = arith::SelectOp::create(n.b, n.loc, negative, fromEnd, index);
  Value i = nn::IotaOp::create(
      n.b, n.loc, n.tensorType(dims, nn::tensorType(index).getElementType()),
      axis);
  ASSIGN_OR_FAIL(Value wide, n.broadcast(Val(n.reshape(index, column)), dims));
  Value hot =
      arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::eq, i, wide);
  auto type = n.tensorType(dims, element);
  return n.set(arith::SelectOp::create(
      n.b, n.loc, hot, nn::splat(n.b, n.loc, type, values.floats()[1]),
      nn::splat(n.b, n.loc, type, values.floats()[0])));
}
static Register oneHot("OneHot", importOneHot);
