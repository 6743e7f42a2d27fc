#include "compiler/emit/AlgorithmRows.h"

#include "compiler/support/Escape.h"
#include "runtime/kernels/AlgorithmFields.h"

using namespace tmc;

void tmc::printAlgorithms(llvm::raw_ostream &os, const AlgorithmFile *file) {
  if (!file || file->products.empty())
    return;
  os << "/// The fastest algorithms of cuBLASLt, as measured.\n"
        "const AlgorithmRow algorithms[] = {\n";
  for (const auto &[product, algorithm] : file->products) {
    os << "    {" << cppString(product) << ",\n     {";
    const char *separator = "";
    for (const AlgorithmField &field : kAlgorithmFields) {
      os << separator << "." << field.name << " = " << algorithm.*field.number;
      separator = ", ";
    }
    os << "}},\n";
  }
  os << "};\n\n";
}

std::string tmc::algorithmField(const AlgorithmFile *file) {
  if (!file)
    return "";
  return "    .algorithms = {.device = " + cppString(file->device) +
         ", .library = " + std::to_string(file->library) +
         ", .rows = " + (file->products.empty() ? "nullptr" : "algorithms") +
         ", .count = " + std::to_string(file->products.size()) + "},\n";
}
