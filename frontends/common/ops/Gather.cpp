#include "frontends/common/ops/Gather.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Reduce.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

FailureOr<Value> tmc::frontend::materialiseIndices(Site &s,
                                                   const Val &indices) {
  if (isFloat(indices.type))
    return s.error("indices of type " + nameOf(indices.type));
  if (indices.type == ElementType::I32 || indices.type == ElementType::I64)
    return s.materialise(indices);
  ASSIGN_OR_FAIL(Val wide, castTo(s, indices, ElementType::I64));
  return s.materialise(wide);
}

/// `indices` with negative ones counted from the end of `size`; an error if one
/// lies outside.
static FailureOr<std::vector<int64_t>> resolved(Site &s, const Array &indices,
                                                int64_t size) {
  std::vector<int64_t> list = indices.ints();
  for (int64_t &at : list) {
    if (at < -size || at >= size)
      return s.error("reads entry " + Twine(at) + " of " + Twine(size));
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

static FailureOr<Val> foldGather(Site &s, const Val &from, const Val &at,
                                 int64_t axis, ArrayRef<int64_t> dims) {
  ASSIGN_OR_FAIL(Array data, s.arrayOf(from));
  ASSIGN_OR_FAIL(Array indices, s.arrayOf(at));
  ASSIGN_OR_FAIL(std::vector<int64_t> list,
                 resolved(s, indices, data.dims()[axis]));
  int64_t outer = 1, inner = 1, size = data.dims()[axis];
  for (int64_t i = 0; i < data.rank(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : data.dims()[i];
  std::vector<int64_t> linear;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : list)
      for (int64_t k = 0; k < inner; ++k)
        linear.push_back((o * size + i) * inner + k);
  return Val(picked(data, dims, linear));
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

/// The entries of `table` along `axis` at `indices`.
static FailureOr<Value> entries(Site &s, Value table, int64_t axis,
                                const Val &indices) {
  ArrayRef<int64_t> data = nn::tensorType(table).getShape();
  int64_t rank = data.size();
  // Known consecutive indices are a slice.
  if (indices.isConst()) {
    ASSIGN_OR_FAIL(Array known, s.arrayOf(indices));
    if (known.size() <= data[axis]) {
      ASSIGN_OR_FAIL(std::vector<int64_t> list, resolved(s, known, data[axis]));
      if (auto start = asRun(list)) {
        Dims offsets(rank, 0), box(data);
        offsets[axis] = *start;
        box[axis] = list.size();
        Value piece = table;
        if (ArrayRef<int64_t>(box) != data)
          piece = nn::SliceOp::create(
              s.b, s.loc,
              s.tensorType(box, nn::tensorType(table).getElementType()), table,
              offsets, Dims(rank, 1));
        return s.reshape(piece, gatheredDims(data, indices.dims, axis));
      }
    }
  }
  ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, indices));
  if (axis == 0)
    return Value(nn::EmbeddingOp::create(s.b, s.loc, table, ids));
  // Bring the axis to the front, look up, and put the indices' dimensions back.
  Dims perm{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      perm.push_back(i);
  Value front = nn::TransposeOp::create(s.b, s.loc, table, perm);
  Value rows = nn::EmbeddingOp::create(s.b, s.loc, front, ids);
  Dims back;
  for (int64_t i = 0; i < axis; ++i)
    back.push_back(indices.rank() + i);
  for (int64_t i = 0; i < indices.rank(); ++i)
    back.push_back(i);
  for (int64_t i = axis + 1; i < rank; ++i)
    back.push_back(indices.rank() + i - 1);
  return Value(nn::TransposeOp::create(s.b, s.loc, rows, back));
}

/// `rows`, the rows at `ids`, with those of `id` detached.
static Value withoutGradientAt(Site &s, Value rows, Value ids, int64_t id) {
  Value isPadding = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::eq,
                                          ids, s.like(ids, id));
  auto type = nn::tensorType(rows);
  auto wide = s.tensorType(type.getShape(), s.b.getI1Type());
  Value chosen = nn::broadcastTo(s.b, s.loc, isPadding, wide,
                                 nn::firstDims(nn::tensorType(ids).getRank()));
  Value detached = nn::DetachOp::create(s.b, s.loc, rows);
  return arith::SelectOp::create(s.b, s.loc, chosen, detached, rows);
}

FailureOr<Val> tmc::frontend::gather(Site &s, const Val &data,
                                     const Val &indices, int64_t axisAttr,
                                     std::optional<int64_t> padding) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, data.rank()));
  if (isFloat(indices.type))
    return s.error("indices of type " + nameOf(indices.type));
  Dims dims = gatheredDims(data.dims, indices.dims, axis);
  auto count = checkedNumElements(dims);
  if (!count)
    return s.error("the number of elements is too large");
  if (s.allFoldable({data, indices}) && *count <= kMaxFoldElements)
    return foldGather(s, data, indices, axis, dims);

  ASSIGN_OR_FAIL(Value table, s.materialise(data));
  if (!s.foldable(indices)) {
    ASSIGN_OR_FAIL(Value found, entries(s, table, axis, indices));
    if (padding) {
      ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, indices));
      found = withoutGradientAt(s, found, ids, *padding);
    }
    return Val(found);
  }
  // Positions and types of tokens are the same for every sample: look up the
  // distinct part, and repeat it.
  ASSIGN_OR_FAIL(Array known, s.arrayOf(indices));
  Dims kept;
  Array part = known.compressed().unrepeated(kept);
  if (part.size() == 0)
    return s.unsupported("a gather of nothing");
  std::vector<int64_t> list;
  ASSIGN_OR_FAIL(list, resolved(s, part, data.dims[axis]));
  Val distinct(Array::ofInts(ElementType::I64, part.dims(), list));
  ASSIGN_OR_FAIL(Value found, entries(s, table, axis, distinct));
  Dims withOnes(indices.rank(), 1);
  for (int64_t dim : kept)
    withOnes[dim] = indices.dims[dim];
  found = s.reshape(found, gatheredDims(data.dims, withOnes, axis));
  if (padding && llvm::is_contained(list, *padding)) {
    ASSIGN_OR_FAIL(Value ids, s.materialise(distinct));
    found = withoutGradientAt(s, found, s.reshape(ids, withOnes), *padding);
  }
  ASSIGN_OR_FAIL(Value wide, s.broadcast(Val(found), dims));
  return Val(wide);
}

FailureOr<Val> tmc::frontend::gatherElements(Site &s, const Val &data,
                                             const Val &indices,
                                             int64_t axisAttr) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, data.rank()));
  bool fits = data.rank() == indices.rank() && !isFloat(indices.type);
  for (int64_t i = 0; fits && i < data.rank(); ++i)
    fits = i == axis || indices.dims[i] <= data.dims[i];
  if (!fits)
    return s.error("indices of shape " + str(indices.dims) +
                   " for a tensor of shape " + str(data.dims));
  if (s.allFoldable({data, indices})) {
    ASSIGN_OR_FAIL(Array from, s.arrayOf(data));
    ASSIGN_OR_FAIL(Array at, s.arrayOf(indices));
    if (at.size() <= kMaxFoldElements && from.size() <= kMaxFoldElements) {
      ASSIGN_OR_FAIL(std::vector<int64_t> list,
                     resolved(s, at, data.dims[axis]));
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
      return Val(picked(from, indices.dims, linear));
    }
  }
  ASSIGN_OR_FAIL(Value table, s.materialise(data));
  ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, indices));
  OpBuilder &b = s.b;
  // If the data don't vary in the other dimensions, this is a lookup in a
  // vector.
  if (s.foldable(data)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(data));
    Dims kept;
    Array part = array.compressed().unrepeated(kept);
    if (part.rank() == 0)
      return Val(part.reshaped({}).broadcastTo(indices.dims));
    if (kept.size() == 1 && kept[0] == axis) {
      ASSIGN_OR_FAIL(Value vector, s.materialise(Val(part)));
      return Val(nn::EmbeddingOp::create(b, s.loc, vector, ids));
    }
  }
  // Otherwise: sum over j of (indices == j) * data[.. j ..].
  Dims box(indices.dims);
  box[axis] = data.dims[axis];
  if (box != data.dims)
    table = nn::SliceOp::create(
        b, s.loc, s.tensorType(box, nn::tensorType(table).getElementType()),
        table, Dims(data.rank(), 0), Dims(data.rank(), 1));
  // [.., I, ..] and [.., J, ..] combined as [.., I, J, ..].
  Dims both(indices.dims), row(indices.dims), column(box);
  both.insert(both.begin() + axis + 1, data.dims[axis]);
  row.insert(row.begin() + axis + 1, 1);
  column.insert(column.begin() + axis, 1);
  Type idType = nn::tensorType(ids).getElementType();
  Value j = nn::IotaOp::create(b, s.loc, s.tensorType(both, idType), axis + 1);
  ASSIGN_OR_FAIL(Value i,
                 s.broadcast(Val(nn::reshapeTo(b, s.loc, ids, row)), both));
  ASSIGN_OR_FAIL(
      Value x, s.broadcast(Val(nn::reshapeTo(b, s.loc, table, column)), both));
  Value chosen =
      arith::CmpIOp::create(b, s.loc, arith::CmpIPredicate::eq, i, j);
  Value zeros = s.like(x, 0);
  Value kept = arith::SelectOp::create(b, s.loc, chosen, x, zeros);
  return Val(reduceAlong(s, kept, nn::ReduceKind::Sum, Dims{axis + 1}));
}

/// The rows in `data`, whose first dimensions were made one, of the slices that
/// the rows of `list` choose.
static FailureOr<std::vector<int64_t>> rowsChosen(Site &s,
                                                  ArrayRef<int64_t> data,
                                                  ArrayRef<int64_t> list,
                                                  int64_t depth) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row + depth <= list.size(); row += depth) {
    int64_t position = 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t i = list[row + d], size = data[d];
      if (i < -size || i >= size)
        return s.error("reads entry " + Twine(i) + " of " + Twine(size));
      position = position * size + (i < 0 ? i + size : i);
    }
    rows.push_back(position);
  }
  return rows;
}

/// The same for indices that a step computes: the sum of index[d] times the
/// elements of a slice.
static Value rowsComputed(Site &s, Value ids, ArrayRef<int64_t> data,
                          int64_t depth, ArrayRef<int64_t> shape) {
  OpBuilder &b = s.b;
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
        nn::SliceOp::create(b, s.loc, s.tensorType(box, type.getElementType()),
                            ids, offsets, Dims(type.getRank(), 1));
    part = s.reshape(part, shape);
    if (stride != 1)
      part = arith::MulIOp::create(b, s.loc, part, s.like(part, stride));
    position = position ? Value(arith::AddIOp::create(b, s.loc, position, part))
                        : part;
  }
  return position;
}

FailureOr<Val> tmc::frontend::gatherSlices(Site &s, const Val &data,
                                           const Val &indices) {
  int64_t depth = indices.rank() ? indices.dims.back() : 0;
  if (depth < 1 || depth > data.rank() || isFloat(indices.type))
    return s.error("indices of shape " + str(indices.dims) +
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
    return s.error("the number of elements is too large, or zero");
  Dims flat{*rows};
  flat.append(rest.begin(), rest.end());

  Value position;
  if (s.foldable(indices)) {
    ASSIGN_OR_FAIL(Array at, s.arrayOf(indices));
    if (at.size() > kMaxFoldElements)
      return s.unsupported("indices of shape " + str(indices.dims));
    std::vector<int64_t> list = at.ints();
    ASSIGN_OR_FAIL(std::vector<int64_t> chosen,
                   rowsChosen(s, data.dims, list, depth));
    if (s.foldable(data) && *count <= kMaxFoldElements) {
      ASSIGN_OR_FAIL(Array from, s.arrayOf(data));
      if (from.size() > kMaxFoldElements)
        return s.unsupported("a gather from shape " + str(data.dims));
      std::vector<int64_t> linear;
      for (int64_t row : chosen)
        for (int64_t k = 0; k < *inner; ++k)
          linear.push_back(row * *inner + k);
      return Val(picked(from, dims, linear));
    }
    // Consecutive rows are a slice; all rows are a reshape.
    ASSIGN_OR_FAIL(Value table, s.materialise(data));
    if (auto start = asRun(chosen)) {
      Dims box(flat), offsets(flat.size(), 0);
      box[0] = chosen.size();
      offsets[0] = *start;
      Value piece = s.reshape(table, flat);
      if (box != flat)
        piece = nn::SliceOp::create(
            s.b, s.loc,
            s.tensorType(box, nn::tensorType(table).getElementType()), piece,
            offsets, Dims(flat.size(), 1));
      return Val(s.reshape(piece, dims));
    }
    ASSIGN_OR_FAIL(position, s.materialise(Val(Array::ofInts(
                                 ElementType::I64, lead, std::move(chosen)))));
  } else {
    ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, indices));
    position = rowsComputed(s, ids, data.dims, depth, lead);
  }
  ASSIGN_OR_FAIL(Value table, s.materialise(data));
  return Val(
      nn::EmbeddingOp::create(s.b, s.loc, s.reshape(table, flat), position));
}

FailureOr<Val> tmc::frontend::slicePlaces(Site &s, ArrayRef<int64_t> data,
                                          const Val &indices) {
  int64_t depth = indices.dims.back();
  ArrayRef<int64_t> lead = ArrayRef<int64_t>(indices.dims).drop_back();
  if (!s.foldable(indices)) {
    ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, indices));
    return Val(rowsComputed(s, ids, data, depth, lead));
  }
  ASSIGN_OR_FAIL(Array at, s.arrayOf(indices));
  if (at.size() > kMaxFoldElements)
    return s.unsupported("indices of shape " + str(indices.dims));
  ASSIGN_OR_FAIL(std::vector<int64_t> rows,
                 rowsChosen(s, data, at.ints(), depth));
  return Val(Array::ofInts(ElementType::I64, lead, std::move(rows)));
}

FailureOr<Val> tmc::frontend::oneHot(Site &s, const Val &ids, int64_t depth,
                                     int64_t axisAttr, ElementType type,
                                     double on, double off) {
  int64_t rank = ids.rank() + 1;
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, rank));
  Dims dims(ids.dims), column(ids.dims);
  dims.insert(dims.begin() + axis, depth);
  column.insert(column.begin() + axis, 1);
  if (isFloat(ids.type))
    return s.unsupported("indices of type " + nameOf(ids.type));
  ASSIGN_OR_FAIL(Value index, materialiseIndices(s, ids));
  Type element = irType(type, s.b.getContext());
  if (!element)
    return s.unsupported("elements of type " + nameOf(type));
  Value fromEnd =
      arith::AddIOp::create(s.b, s.loc, index, s.like(index, depth));
  Value negative = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::slt,
                                         index, s.like(index, 0));
  index = arith::SelectOp::create(s.b, s.loc, negative, fromEnd, index);
  Value i = nn::IotaOp::create(
      s.b, s.loc, s.tensorType(dims, nn::tensorType(index).getElementType()),
      axis);
  ASSIGN_OR_FAIL(Value wide, s.broadcast(Val(s.reshape(index, column)), dims));
  Value hot =
      arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::eq, i, wide);
  auto result = s.tensorType(dims, element);
  Value ones = nn::splat(s.b, s.loc, result, on);
  Value zeros = nn::splat(s.b, s.loc, result, off);
  return Val(arith::SelectOp::create(s.b, s.loc, hot, ones, zeros));
}
