#include "frontends/common/ElementType.h"

#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace tmc::frontend;

namespace {
struct Entry {
  ElementType type;
  const char *name;
  int64_t bytes;
  bool isFloat;
};
constexpr Entry kTypes[] = {
    {ElementType::F32, "f32", 4, true},   {ElementType::U8, "u8", 1, false},
    {ElementType::I8, "i8", 1, false},    {ElementType::U16, "u16", 2, false},
    {ElementType::I16, "i16", 2, false},  {ElementType::I32, "i32", 4, false},
    {ElementType::I64, "i64", 8, false},  {ElementType::Bool, "bool", 1, false},
    {ElementType::F16, "f16", 2, true},   {ElementType::F64, "f64", 8, true},
    {ElementType::U32, "u32", 4, false},  {ElementType::U64, "u64", 8, false},
    {ElementType::BF16, "bf16", 2, true},
};

const Entry &entryOf(ElementType type) {
  for (const Entry &entry : kTypes)
    if (entry.type == type)
      return entry;
  llvm_unreachable("every element type has an entry");
}
} // namespace

std::string tmc::frontend::nameOf(ElementType type) {
  return entryOf(type).name;
}

int64_t tmc::frontend::sizeInFile(ElementType type) {
  return entryOf(type).bytes;
}

bool tmc::frontend::isFloat(ElementType type) { return entryOf(type).isFloat; }

Type tmc::frontend::irType(ElementType type, MLIRContext *context) {
  Builder b(context);
  switch (type) {
  case ElementType::F32:
    return b.getF32Type();
  case ElementType::F64:
    return b.getF64Type();
  case ElementType::F16:
    return b.getF16Type();
  case ElementType::BF16:
    return b.getBF16Type();
  case ElementType::Bool:
    return b.getI1Type();
  case ElementType::I8:
    return b.getI8Type();
  case ElementType::I32:
    return b.getI32Type();
  case ElementType::I64:
    return b.getI64Type();
  default:
    return {};
  }
}

ElementType tmc::frontend::elementTypeOf(Type type) {
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isInteger(1))
    return ElementType::Bool;
  if (type.isInteger(8))
    return ElementType::I8;
  if (type.isInteger(32))
    return ElementType::I32;
  assert(type.isInteger(64) && "no other type is imported");
  return ElementType::I64;
}

double tmc::frontend::roundTo(ElementType type, double value) {
  switch (type) {
  case ElementType::F64:
    return value;
  case ElementType::F32:
    return static_cast<float>(value);
  default: {
    bool inexact;
    llvm::APFloat exact(value);
    exact.convert(type == ElementType::F16 ? llvm::APFloat::IEEEhalf()
                                           : llvm::APFloat::BFloat(),
                  llvm::APFloat::rmNearestTiesToEven, &inexact);
    return exact.convertToDouble();
  }
  }
}

int64_t tmc::frontend::wrapTo(ElementType type, int64_t value) {
  switch (type) {
  case ElementType::Bool:
    return value != 0;
  case ElementType::U8:
    return static_cast<uint8_t>(value);
  case ElementType::I8:
    return static_cast<int8_t>(value);
  case ElementType::U16:
    return static_cast<uint16_t>(value);
  case ElementType::I16:
    return static_cast<int16_t>(value);
  case ElementType::I32:
    return static_cast<int32_t>(value);
  case ElementType::U32:
    return static_cast<uint32_t>(value);
  default:
    return value;
  }
}
