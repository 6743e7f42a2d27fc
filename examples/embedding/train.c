/* Trains a compiled step of examples/mlp.onnx on pictures of digits: docs/embedding.md. */
#include "step.h"
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, SAMPLES = 320, PIXELS = 784, HEADER = 128 };
static float image[SAMPLES][PIXELS];
static int64_t label[SAMPLES];

static void check(int code) {
  if (code) {
    fprintf(stderr, "error: %s\n", tmc_last_error());
    exit(code);
  }
}

static void read_npy(const char *path, void *data, size_t bytes) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, HEADER, SEEK_SET) || fread(data, 1, bytes, file) != bytes) {
    fprintf(stderr, "error: can't read %s\n", path);
    exit(1);
  }
  fclose(file);
}

int main(int count, char **words) {
  if (count != 3)
    return 2;
  read_npy(words[1], image, sizeof image);
  read_npy(words[2], label, sizeof label);
  tmc_step *step;
  check(tmc_step_create(NULL, &step)); /* Maps the arena, prepares the kernels. */
  check(tmc_step_init_random(step, 1));
  tmc_step_set_learning_rate(step, 1e-3);
  for (int i = 0; i < 100; ++i) {
    const int first = i * BATCH % SAMPLES;
    double loss;
    check(tmc_step_write(step, "image", image[first], BATCH * sizeof image[0]));
    check(tmc_step_write(step, "label", &label[first], BATCH * sizeof label[0]));
    check(tmc_step_run(step, &loss));
    if (i % 33 == 0)
      printf("step %d: loss %.4f\n", i + 1, loss);
  }
  check(tmc_step_save_weights(step, "model", NULL)); /* model/model.safetensors */
  tmc_step_destroy(step);
}
