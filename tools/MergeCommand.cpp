#include "tools/MergeCommand.h"

#include "compiler/support/Escape.h"
#include "driver/merge/Merge.h"
#include "driver/pipeline/Compile.h"
#include "driver/pipeline/Messages.h"
#include "runtime/step/File.h"

#include "llvm/Support/raw_ostream.h"

using namespace tmc;

static Expected<MergeOptions> read(const MergeCommand &flags) {
  for (const auto *flag : {&flags.base, &flags.adapter, &flags.output})
    if (flag->empty())
      return Failure::usage("--base, --adapter and -o are needed")
          .note("usage: tmc merge --base DIR --adapter DIR -o DIR");
  MergeOptions options;
  options.base = flags.base;
  options.adapter = flags.adapter;
  options.output = flags.output;
  if (flags.type == "f32")
    options.type = DType::F32;
  else if (flags.type == "bf16")
    options.type = DType::BF16;
  else if (flags.type == "f16")
    options.type = DType::F16;
  else if (!flags.type.empty())
    return Failure::usage("--type=" + flags.type +
                          " is none of f32, bf16, f16");
  Expected<int64_t> bytes = parseSize(flags.shard);
  if (!bytes)
    return std::move(bytes.failure());
  if (*bytes < 1)
    return Failure::usage("--shard=" + flags.shard + " holds nothing");
  options.shardBytes = *bytes;
  if (isProgressSeen())
    options.progress = [](const std::string &what) { showProgress(what); };
  return options;
}

int MergeCommand::run() {
  Expected<MergeOptions> options = read(*this);
  if (!options) {
    report(options.failure());
    return options.failure().exitCode();
  }
  Expected<MergeReport> done = mergeAdapter(*options);
  if (!done) {
    report(done.failure());
    return done.failure().exitCode();
  }
  for (const std::string &text : done->notes)
    note(text);
  const std::string text = "merged " + std::to_string(done->changed) + " of " +
                           std::to_string(done->tensors) +
                           " tensors: " + formatBytes(done->bytes) + " in " +
                           std::to_string(done->files) +
                           (done->files == 1 ? " file" : " files");
  llvm::outs() << visible(text) << "\n";
  return 0;
}
