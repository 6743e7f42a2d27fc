// What the call that a node is noted with says beyond the node.

#include "frontends/common/Import.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/TorchCall.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

using namespace tmc;
using namespace tmc::onnx_import;

namespace {
TorchCall callOf(const char *target, std::vector<std::string> arguments) {
  TorchCall call;
  call.target = target;
  call.arguments = std::move(arguments);
  return call;
}

/// A node with PyTorch's call among its metadata.
void note(onnx::NodeProto &node, const std::string &call) {
  onnx::StringStringEntryProto entry;
  entry.set_key("pkg.torch.onnx.fx_node");
  entry.set_value("%n : [num_users=1] = call_function[target=torch.ops." +
                  call + ", kwargs = {})");
  node.mutable_unknown_fields()->AddLengthDelimited(kNodeMetadata,
                                                    entry.SerializeAsString());
}

/// A model of nodes from x, four floats or two images, to y.
onnx::ModelProto modelOf(const char *nodes, const char *shape) {
  onnx::ModelProto model;
  const std::string text =
      (llvm::Twine("ir_version: 8 opset_import { version: 18 } graph { "
                   "input { name: 'x' type { tensor_type { elem_type: 1 shape "
                   "{ ") +
       shape +
       "} } } } output { name: 'y' type { tensor_type { elem_type: 1 } } } " +
       nodes + "}")
          .str();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

class OnnxNotes : public ::testing::Test {
protected:
  OnnxNotes() {
    mlir::DialectRegistry registry;
    registerImportDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  Expected<ImportedModel> import(const onnx::ModelProto &model) {
    ImportOptions options;
    options.needLoss = false;
    return importOnnxBytes(model.SerializeAsString(), ".", options, context);
  }
  /// The module as text; empty where it isn't imported.
  std::string text(const onnx::ModelProto &model) {
    auto imported = import(model);
    std::string printed;
    llvm::raw_string_ostream out(printed);
    if (imported)
      imported->module->print(out);
    return printed;
  }
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};
} // namespace

TEST(OnnxLostArguments, AreNamed) {
  auto pool = [](const char *divisor) {
    return lostArgument(
        callOf("aten.avg_pool2d.default",
               {"%x", "[2, 2]", "[2, 2]", "[0, 0]", "False", "True", divisor}));
  };
  EXPECT_EQ(pool("3"), "divisor_override=3");
  EXPECT_EQ(pool("None"), std::nullopt);
  EXPECT_EQ(lostArgument(
                callOf("aten.embedding.default", {"%w", "%i", "-1", "True"})),
            "scale_grad_by_freq=True");
  EXPECT_EQ(lostArgument(callOf("aten.embedding.default", {"%w", "%i", "-1"})),
            std::nullopt);
  EXPECT_EQ(lostArgument(callOf("aten.embedding_renorm.default",
                                {"%w", "%i", "-1", "True"})),
            std::nullopt);
}

TEST_F(OnnxNotes, RefuseWhatTheNodeLacks) {
  onnx::ModelProto model = modelOf(
      "node { op_type: 'AveragePool' name: 'pool' input: 'x' output: 'y' "
      "attribute { name: 'kernel_shape' type: INTS ints: 2 ints: 2 } }",
      "dim { dim_value: 1 } dim { dim_value: 2 } dim { dim_value: 4 } "
      "dim { dim_value: 4 }");
  EXPECT_NE(text(model), "");
  note(*model.mutable_graph()->mutable_node(0),
       "aten.avg_pool2d.default](args = (%x, [2, 2], [1, 1], [0, 0], False, "
       "True, 3)");
  auto refused = import(model);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().kind, FailureKind::Unsupported);
  ASSERT_FALSE(refused.failure().notes.empty());
  EXPECT_NE(refused.failure().notes[0].find("divisor_override=3"),
            std::string::npos);
}

TEST_F(OnnxNotes, TellAFunctionFromItsParts) {
  onnx::ModelProto model =
      modelOf("node { op_type: 'Sigmoid' input: 'x' output: 's' } "
              "node { op_type: 'Log' input: 's' output: 'y' }",
              "dim { dim_value: 4 }");
  auto hasLog = [](const std::string &printed) {
    return printed.find("math.log ") != std::string::npos;
  };
  EXPECT_FALSE(hasLog(text(model)));
  onnx::ModelProto whole = model, parts = model;
  note(*whole.mutable_graph()->mutable_node(1),
       "aten.log_sigmoid.default](args = (%x,)");
  EXPECT_FALSE(hasLog(text(whole)));
  // The user took the logarithm.
  note(*parts.mutable_graph()->mutable_node(1),
       "aten.log.default](args = (%sigmoid,)");
  EXPECT_TRUE(hasLog(text(parts)));
}

TEST_F(OnnxNotes, SayWhatFactorSizesCameFrom) {
  // Of 5 elements, 8: places by a factor of 1.7, not of 1.6.
  onnx::ModelProto model = modelOf(
      "initializer { name: 'n' dims: 3 data_type: 7 int64_data: 1 "
      "int64_data: 1 int64_data: 8 } node { op_type: 'Resize' input: 'x' "
      "input: '' input: '' input: 'n' output: 'y' "
      "attribute { name: 'mode' type: STRING s: 'linear' } }",
      "dim { dim_value: 1 } dim { dim_value: 1 } dim { dim_value: 5 }");
  const std::string bySizes = text(model);
  note(*model.mutable_graph()->mutable_node(0),
       "aten.upsample_linear1d.default](args = (%x, [8], False, 1.7)");
  const std::string byFactor = text(model);
  EXPECT_NE(bySizes, "");
  EXPECT_NE(byFactor, "");
  EXPECT_NE(bySizes, byFactor);
}
