// Files that are no models, or not whole, or made to do harm: each ends in one
// message and the exit code of a faulty input, in bounded time and memory.

#include "frontends/onnx/Import.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Wire.h"

#include "mlir/IR/MLIRContext.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

using namespace tmc;
using namespace tmc::onnx_import;

namespace {

/// loss = sum(x * w), with `w` of `size` elements in raw_data.
onnx::ModelProto smallModel(int64_t size) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("test");
  auto *opset = model.add_opset_import();
  opset->set_version(18);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  auto *w = graph->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(size);
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i)
    values[i] = static_cast<float>(i);
  w->set_raw_data(values.data(), size * sizeof(float));
  auto addInput = [&](auto *value, const char *name) {
    value->set_name(name);
    auto *type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape();
    return type->mutable_shape();
  };
  addInput(graph->add_input(), "x")->add_dim()->set_dim_value(size);
  addInput(graph->add_output(), "loss");
  auto *mul = graph->add_node();
  mul->set_op_type("Mul");
  mul->add_input("x");
  mul->add_input("w");
  mul->add_output("y");
  auto *sum = graph->add_node();
  sum->set_op_type("ReduceSum");
  sum->add_input("y");
  sum->add_output("loss");
  auto *keep = sum->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  return model;
}

class OnnxFileTest : public ::testing::Test {
protected:
  Expected<ImportedModel> import(const std::string &bytes) {
    return importOnnxBytes(bytes, ".", {}, context);
  }
  /// The exit code that `bytes` end with, 0 if they import.
  int codeOf(const std::string &bytes) {
    auto model = import(bytes);
    if (model)
      return 0;
    EXPECT_FALSE(model.failure().message.empty());
    return model.failure().exitCode();
  }
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

TEST_F(OnnxFileTest, LargeDataStayInTheFile) {
  std::string bytes = smallModel(1000).SerializeAsString();
  auto stripped = stripTensorData(bytes);
  ASSERT_TRUE(stripped);
  EXPECT_LT(stripped->size(), 300u); // 4000 bytes of data are gone.
  auto model = import(bytes);
  ASSERT_TRUE(model);
  auto data = model->weights->read("w");
  ASSERT_TRUE(data);
  ASSERT_EQ(data->size(), 4000u);
  float last;
  memcpy(&last, data->data() + 3996, 4);
  EXPECT_EQ(last, 999);
  EXPECT_EQ(model->weights->names(), std::vector<std::string>{"w"});
  EXPECT_EQ(model->weights->read("v").failure().exitCode(), 1);
}

TEST_F(OnnxFileTest, SmallDataToo) {
  auto model = import(smallModel(3).SerializeAsString());
  ASSERT_TRUE(model);
  EXPECT_EQ(model->weights->read("w")->size(), 12u);
}

/// Every prefix is an error; none crashes. A prefix that ends after the last
/// field that matters would be a model, but here the operators' version, which
/// must be there, is written last.
TEST_F(OnnxFileTest, EveryPrefixIsAnError) {
  std::string bytes = smallModel(400).SerializeAsString();
  ASSERT_EQ(codeOf(bytes), 0);
  int checked = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Within the data every byte is like the next.
    if (size > 200 && size + 400 < bytes.size() && size % 97)
      continue;
    EXPECT_EQ(codeOf(bytes.substr(0, size)), 1) << "prefix of " << size;
    ++checked;
  }
  EXPECT_GT(checked, 300);
}

/// One byte changed: an error or a model, never a crash.
TEST_F(OnnxFileTest, AnyByteMayBeWrong) {
  std::string bytes = smallModel(3).SerializeAsString();
  int errors = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int flip : {0x01, 0x08, 0x80, 0xff}) {
      std::string broken = bytes;
      broken[at] = static_cast<char>(broken[at] ^ flip);
      int code = codeOf(broken);
      EXPECT_TRUE(code == 0 || code == 1 || code == 2 || code == 4 ||
                  code == 74)
          << "byte " << at << " ^ " << flip << ": " << code;
      errors += code != 0;
    }
  EXPECT_GT(errors, 100);
}

TEST_F(OnnxFileTest, WhatIsNoModel) {
  EXPECT_EQ(import("").failure().message, "the file is empty");
  EXPECT_EQ(codeOf("PK\3\4 an archive"), 1);
  EXPECT_EQ(codeOf("#!/bin/sh\necho hello\n"), 1);
  EXPECT_EQ(codeOf(std::string(4096, '\0')), 1);
  EXPECT_EQ(codeOf(std::string(4096, '\xff')), 1);
}

/// A message nested in itself: `If` in `If` in `If`.
std::string nested(int depth) {
  onnx::GraphProto graph;
  for (int i = 0; i < depth; ++i) {
    onnx::GraphProto outer;
    auto *node = outer.add_node();
    node->set_op_type("If");
    auto *branch = node->add_attribute();
    branch->set_name("then_branch");
    branch->set_type(onnx::AttributeProto::GRAPH);
    *branch->mutable_g() = std::move(graph);
    graph = std::move(outer);
  }
  onnx::ModelProto model;
  model.add_opset_import()->set_version(18);
  *model.mutable_graph() = std::move(graph);
  return model.SerializeAsString();
}

TEST_F(OnnxFileTest, NestingIsBounded) {
  auto deep = stripTensorData(nested(40));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.failure().message,
            "the model is nested more than 90 messages deep");
  EXPECT_TRUE(stripTensorData(nested(20)));
  EXPECT_EQ(codeOf(nested(5000)), 1);
}

/// A hundred thousand empty tensors cost two bytes each in the file and a
/// hundred times that in memory.
TEST_F(OnnxFileTest, MessagesAreCounted) {
  std::string graph;
  for (int i = 0; i < 1000; ++i)
    graph += std::string("\x2a\x00", 2); // initializer: an empty tensor
  std::string model = "\x3a";            // graph
  model += static_cast<char>(0x80 | (graph.size() & 0x7f));
  model += static_cast<char>(graph.size() >> 7);
  model += graph;
  WireLimits limits;
  limits.maxMessages = 500;
  auto stripped = stripTensorData(model, limits);
  ASSERT_FALSE(stripped);
  EXPECT_EQ(stripped.failure().message, "the model has more than 500 messages");
  limits.maxMessages = 5000;
  EXPECT_TRUE(stripTensorData(model, limits));
}

/// The fields that stand for data must not be forged.
TEST_F(OnnxFileTest, ForgedBlobsAreDropped) {
  onnx::ModelProto model = smallModel(3);
  auto *w = model.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->mutable_unknown_fields()->AddVarint(kBlobOffsetField, 1 << 30);
  w->mutable_unknown_fields()->AddVarint(kBlobLengthField, 12);
  auto forged = import(model.SerializeAsString());
  ASSERT_FALSE(forged);
  EXPECT_EQ(forged.failure().message,
            "tensor 'w' has 0 bytes of data, but its shape needs 12");
}

TEST_F(OnnxFileTest, SizesMustAgree) {
  auto withDims = [](std::vector<int64_t> dims) {
    onnx::ModelProto model = smallModel(400);
    auto *w = model.mutable_graph()->mutable_initializer(0);
    w->clear_dims();
    for (int64_t dim : dims)
      w->add_dims(dim);
    return model.SerializeAsString();
  };
  EXPECT_EQ(codeOf(withDims({401})), 1);
  EXPECT_EQ(codeOf(withDims({-1})), 1);
  EXPECT_EQ(codeOf(withDims({INT64_MAX, INT64_MAX})), 1);
  EXPECT_EQ(codeOf(withDims({int64_t(1) << 32, int64_t(1) << 32})), 1);
  EXPECT_EQ(codeOf(withDims({20, 20})), 1); // x has 400: 20 and 400 don't fit
}

TEST_F(OnnxFileTest, ExternalDataAreChecked) {
  auto external = [](const std::string &key, const std::string &value) {
    onnx::ModelProto model = smallModel(3);
    auto *w = model.mutable_graph()->mutable_initializer(0);
    w->clear_raw_data();
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    auto add = [&](const std::string &k, const std::string &v) {
      auto *entry = w->add_external_data();
      entry->set_key(k);
      entry->set_value(v);
    };
    if (key != "location")
      add("location", "absent.data");
    add(key, value);
    return model.SerializeAsString();
  };
  // That the file is absent matters only when its values are wanted.
  auto absent = import(external("offset", "0"));
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->weights->read("w").failure().exitCode(), 74);
  EXPECT_EQ(absent->weights->fileOf("w"), "absent.data");
  for (const char *value :
       {"-1", "1e9", "", "0x10", " 5", "99999999999999999999"})
    EXPECT_EQ(codeOf(external("offset", value)), 1) << value;
  EXPECT_EQ(codeOf(external("length", "13")), 1);
  EXPECT_EQ(codeOf(external("length", "12")), 0);
  auto escaping = import(external("location", "../../../etc/passwd"));
  ASSERT_TRUE(escaping);
  EXPECT_EQ(escaping->weights->read("w").failure().exitCode(), 1);
}

TEST_F(OnnxFileTest, OffsetsAreNotTrusted) {
  std::string path = ::testing::TempDir() + "offsets.data";
  std::ofstream(path) << "12345678";
  TensorData data;
  data.name = "w";
  data.place = TensorData::External;
  data.location = "offsets.data";
  ModelFiles files({}, "model", ::testing::TempDir());
  auto readAt = [&](int64_t offset, int64_t length) {
    data.offset = offset;
    data.length = length;
    auto bytes = files.read(data);
    return bytes ? std::string(*bytes) : bytes.failure().message;
  };
  EXPECT_EQ(readAt(4, 4), "5678");
  EXPECT_EQ(readAt(5, 4), "external file 'offsets.data' has 8 bytes, but 'w' "
                          "wants 4 at 5");
  EXPECT_NE(readAt(INT64_MAX, INT64_MAX).find("has 8 bytes"),
            std::string::npos);
  std::remove(path.c_str());
}

/// Real models with a few bytes changed, or a node's inputs exchanged: whatever
/// they say, importing ends in a model or a message.
TEST_F(OnnxFileTest, MutatedModels) {
  const char *rounds = std::getenv("TMC_FUZZ_ROUNDS");
  int count = rounds ? std::atoi(rounds) : 40;
  std::mt19937 random(1);
  for (const char *name :
       {"gpt2-tiny-dropout", "llama-tiny-optimized", "unet-tiny",
        "unet-tiny-opset21", "bert-tiny-mlm", "decoder-opset23",
        "resnet-tiny-torchscript-opset13", "gpt2-tiny-torchscript-opset14"}) {
    std::ifstream file(std::string(TMC_SOURCE_DIR "/test/models/") + name +
                           ".onnx",
                       std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(text.str())) << name;
    ImportOptions options;
    options.dims = {{"batch", 2}, {"sequence", 16}};
    if (model.graph().input(0).name() == "image")
      options.dims.erase("sequence");
    ASSERT_TRUE(importOnnxBytes(text.str(), ".", options, context)) << name;
    int errors = 0;
    for (int round = 0; round < count; ++round) {
      onnx::ModelProto changed = model;
      auto pick = [&](int size) {
        return static_cast<int>(random() % static_cast<unsigned>(size));
      };
      auto &graph = *changed.mutable_graph();
      auto &node = *graph.mutable_node(pick(graph.node_size()));
      auto &other = graph.node(pick(graph.node_size()));
      switch (pick(6)) {
      case 0: // An input becomes another value of the graph.
        if (node.input_size() && other.output_size())
          node.set_input(pick(node.input_size()), other.output(0));
        break;
      case 1:
        if (node.input_size())
          node.mutable_input()->RemoveLast();
        break;
      case 2: // An attribute becomes another number.
        if (node.attribute_size()) {
          auto &a = *node.mutable_attribute(pick(node.attribute_size()));
          const int64_t values[] = {-1, 0, 1, 2, 7, INT64_MIN, INT64_MAX};
          a.set_i(values[pick(7)]);
          if (a.ints_size()) {
            int64_t value = values[pick(7)];
            a.set_ints(pick(a.ints_size()), value);
          }
          if (a.has_t() && a.t().raw_data().size() >= 8)
            a.mutable_t()->mutable_raw_data()->replace(
                0, 8, reinterpret_cast<const char *>(&values[pick(7)]), 8);
        }
        break;
      case 3:
        node.set_op_type(other.op_type());
        break;
      case 4:
        node.clear_attribute();
        break;
      default: {
        std::string bytes = text.str();
        for (int k = 0; k < 3; ++k)
          bytes[pick(bytes.size())] = static_cast<char>(random());
        changed.Clear();
        if (!changed.ParseFromString(bytes))
          changed = model;
      }
      }
      auto result =
          importOnnxBytes(changed.SerializeAsString(), ".", options, context);
      if (result)
        continue;
      ++errors;
      EXPECT_NE(result.failure().exitCode(), 70)
          << name << " round " << round << ": " << result.failure().message;
    }
    EXPECT_GT(errors, count / 10) << name;
  }
}
} // namespace

TEST_F(OnnxFileTest, NamesAreUtf8WithoutControlCharacters) {
  for (int byte = 1; byte < 256; ++byte) {
    onnx::ModelProto model = smallModel(4);
    model.mutable_graph()->mutable_node(1)->set_name(std::string("a") +
                                                     char(byte));
    const bool isSound = byte >= 0x20 && byte < 0x7f;
    EXPECT_EQ(codeOf(model.SerializeAsString()), isSound ? 0 : 1) << byte;
  }
  for (const char *name : {"\\", "*/", "\u202e", "\u2028", "\U0001f600", "..",
                           "/", "int", "%s", "\"", "?\?/"}) {
    onnx::ModelProto model = smallModel(4);
    model.mutable_graph()->mutable_node(1)->set_name(name);
    EXPECT_EQ(codeOf(model.SerializeAsString()), 0) << name;
  }
}

TEST_F(OnnxFileTest, ABadNameIsSaidByPlaceAndByte) {
  onnx::ModelProto model = smallModel(4);
  model.mutable_graph()->mutable_node(1)->mutable_input(0)->assign("y\x1b[2J");
  const std::string bytes = model.SerializeAsString();
  auto imported = import(bytes);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.failure().message,
            "the name graph.node[1].input[0], at byte " +
                std::to_string(bytes.find("y\x1b[2J")) +
                " of the file, holds the control character 0x1b at byte 1");
}

/// Names that come of an exporter's notes, which may have several lines.
TEST_F(OnnxFileTest, NotesGiveNoBadNames) {
  onnx::ModelProto model = smallModel(4);
  const std::string notes[] = {"['', 'a\\nb', 'mul']", "['', 'a\nb', 'mul']"};
  for (const std::string &scopes : notes) {
    onnx::StringStringEntryProto entry;
    entry.set_key("pkg.torch.onnx.name_scopes");
    entry.set_value(scopes);
    onnx::ModelProto noted = model;
    onnx::NodeProto *node = noted.mutable_graph()->mutable_node(0);
    node->GetReflection()->MutableUnknownFields(node)->AddLengthDelimited(
        kNodeMetadata, entry.SerializeAsString());
    auto imported = import(noted.SerializeAsString());
    EXPECT_EQ(bool(imported), scopes.find('\n') == std::string::npos);
    std::string said = imported ? "" : imported.failure().message;
    EXPECT_EQ(said.find("holds the control character 0x0a at byte 1") ==
                  std::string::npos,
              bool(imported))
        << said;
  }
}
