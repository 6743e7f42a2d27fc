// Where a node is in the user's model, by what exporters leave behind.

#include "frontends/onnx/Importer.h"

#include "mlir/IR/MLIRContext.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

using namespace tmc::onnx_import;

namespace {
class OnnxNamesTest : public ::testing::Test {
protected:
  /// Adds an entry of the metadata, a field that libonnx's class lacks.
  static void note(onnx::NodeProto &node, const char *key, const char *value) {
    onnx::StringStringEntryProto entry;
    entry.set_key(key);
    entry.set_value(value);
    node.mutable_unknown_fields()->AddLengthDelimited(
        kNodeMetadata, entry.SerializeAsString());
  }
  std::string name(const onnx::NodeProto &node) {
    return llvm::cast<mlir::NameLoc>(locationOf(node, context)).getName().str();
  }
  std::string line(const onnx::NodeProto &node) {
    auto named = llvm::cast<mlir::NameLoc>(locationOf(node, context));
    auto file = llvm::dyn_cast<mlir::FileLineColLoc>(named.getChildLoc());
    return file
               ? file.getFilename().str() + ":" + std::to_string(file.getLine())
               : "";
  }
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

TEST_F(OnnxNamesTest, PathsInNames) {
  EXPECT_EQ(cleanName("/model/layers.0/Add"), "model.layers.0.Add");
  EXPECT_EQ(cleanName("plain"), "plain");
  onnx::NodeProto node;
  node.set_op_type("Add");
  EXPECT_EQ(name(node), "Add");
  node.add_output("sum");
  EXPECT_EQ(name(node), "sum");
  node.set_name("/a/b/Add_1");
  EXPECT_EQ(name(node), "a.b.Add_1");
  EXPECT_EQ(line(node), "");
}

TEST_F(OnnxNamesTest, ScopesOfModules) {
  onnx::NodeProto node;
  node.set_name("node_addmm_12");
  note(node, "pkg.torch.onnx.name_scopes",
       "['', 'net', 'net.3', 'net.3.mlp', 'net.3.mlp.fc', 'addmm_12']");
  EXPECT_EQ(name(node), "net.3.mlp.fc.addmm");
  onnx::NodeProto top;
  note(top, "pkg.torch.onnx.name_scopes", "['', 'view_7']");
  EXPECT_EQ(name(top), "view");
  // What isn't such a list is no reason to fail.
  onnx::NodeProto odd;
  odd.set_name("n");
  note(odd, "pkg.torch.onnx.name_scopes", "['");
  EXPECT_EQ(name(odd), "n");
}

/// The innermost frame counts, without the folders of the exporting machine.
TEST_F(OnnxNamesTest, LinesOfTheUser) {
  onnx::NodeProto node;
  note(node, "pkg.torch.onnx.stack_trace",
       "File \"/home/me/train.py\", line 212, in forward\n    x = fc(x)");
  EXPECT_EQ(line(node), "train.py:212");
  onnx::NodeProto packaged;
  note(packaged, "pkg.torch.onnx.stack_trace",
       "File \"/home/me/train.py\", line 1, in forward\n"
       "File \"/opt/lib/site-packages/nets/net.py\", line 30, in forward");
  EXPECT_EQ(line(packaged), "nets/net.py:30");
  onnx::NodeProto odd;
  note(odd, "pkg.torch.onnx.stack_trace", "File \"x.py\", line many");
  EXPECT_EQ(line(odd), "");
}
} // namespace
