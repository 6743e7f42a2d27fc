//===- Fields.h - the fields of a struct, by name ---------------*- C++ -*-===//
//
// A kernel's Params lists its fields once, in the declared order and without
// `scratchBytes`, which the compiler adds:
//
//     struct Params {
//       DType type;
//       std::vector<int64_t> shape, perm;
//       int64_t scratchBytes = 0;
//
//       TMC_FIELDS(type, shape, perm)
//     };
//
// The compiler fills such a struct and visits it to print
//
//     Transpose transpose_0{{.type = DType::F32, .shape = {2, 3}, ...}};
//
// Fields that only some ops have are groups: TMC_OPTIONAL prints its fields
// only if the first one isn't zero. Optional fields, and no others except
// `scratchBytes`, have initializers. Code that leaves out another field doesn't
// compile (-Wmissing-field-initializers).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_FIELDS_H
#define TMC_RUNTIME_KERNELS_FIELDS_H

#include <cstddef>
#include <string_view>
#include <utility>

namespace tmc {
namespace detail {

/// Removes the first name from the list "a, b, c", and returns it.
constexpr std::string_view takeName(std::string_view &names) {
  const size_t end = names.find(',');
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(end == std::string_view::npos ? names.size() : end + 2);
  return name;
}

template <typename Visitor, typename... Ts>
constexpr void visitGiven(Visitor &visitor, std::string_view names,
                          const Ts &...values) {
  (visitor(takeName(names), values, true), ...);
}

template <typename Visitor, typename T, typename... Ts>
constexpr void visitOptional(Visitor &visitor, std::string_view names,
                             const T &first, const Ts &...rest) {
  const bool isGiven = first != T{};
  visitor(takeName(names), first, isGiven);
  (visitor(takeName(names), rest, isGiven), ...);
}

/// Converts to any field.
struct AnyField {
  template <typename T> constexpr operator T() const;
};
template <typename P, size_t... I>
constexpr bool hasFields(std::index_sequence<I...>) {
  return requires { P{(void(I), AnyField{})...}; };
}
/// The number of fields of the aggregate `P`.
template <typename P, size_t Count = 64> constexpr size_t countFields() {
  static_assert(Count > 0);
  if constexpr (hasFields<P>(std::make_index_sequence<Count>()))
    return Count;
  else
    return countFields<P, Count - 1>();
}

} // namespace detail

/// Calls `visitor(name, value, isGiven)` for each field; an optional field that
/// isn't given needs no text.
#define TMC_FIELDS(...) TMC_FIELD_GROUPS(TMC_GIVEN(__VA_ARGS__))
/// The same of several groups, in the declared order.
#define TMC_FIELD_GROUPS(...)                                                  \
  template <typename Visitor> constexpr void visit(Visitor &&visitor) const {  \
    __VA_ARGS__;                                                               \
  }
#define TMC_GIVEN(...)                                                         \
  ::tmc::detail::visitGiven(visitor, #__VA_ARGS__, __VA_ARGS__)
#define TMC_OPTIONAL(...)                                                      \
  ::tmc::detail::visitOptional(visitor, #__VA_ARGS__, __VA_ARGS__)

/// The name of one field, which must exist.
#define TMC_FIELD_NAME(STRUCT, FIELD) (void(sizeof(STRUCT::FIELD)), #FIELD)

/// Defines the text of an enumerator, as code prints it. The enumerators are
/// listed with their scope: TMC_WORDS(Color, Color::Red, Color::Blue).
#define TMC_WORDS(ENUM, ...)                                                   \
  constexpr std::string_view wordOf(ENUM value) {                              \
    std::string_view names = #__VA_ARGS__;                                     \
    for (const ENUM each : {__VA_ARGS__}) {                                    \
      const std::string_view name = ::tmc::detail::takeName(names);            \
      if (each == value)                                                       \
        return name;                                                           \
    }                                                                          \
    return {};                                                                 \
  }

/// True if P lists each of its fields once and in the declared order. The last
/// one, `scratchBytes`, isn't listed.
template <typename P> constexpr bool listsEveryField() {
  const P p{};
  size_t count = 0;
  bool isOrdered = true;
  const void *last = nullptr;
  p.visit([&](std::string_view, const auto &value, bool) {
    isOrdered &= count++ == 0 || last < static_cast<const void *>(&value);
    last = &value;
  });
  return isOrdered && count + 1 == detail::countFields<P>();
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_FIELDS_H
