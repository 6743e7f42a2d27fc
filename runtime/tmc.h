/*===- tmc.h - the C interface of a compiled step ------------------------===
 *
 * For embedding a compiled step in a program: link libstep.so, include this.
 *
 *     tmc_options options;
 *     tmc_options_init(&options, sizeof options);
 *     tmc_step *step;
 *     if (tmc_step_create(&options, &step))
 *       die(tmc_last_error());
 *     tmc_step_init_random(step, 42);
 *     tmc_step_write(step, "tokens", tokens, sizeof tokens);
 *     tmc_step_set_learning_rate(step, 3e-4);
 *     double loss;
 *     if (tmc_step_run(step, &loss))
 *       die(tmc_last_error());
 *     tmc_step_save(step, "checkpoint");
 *     tmc_step_destroy(step);
 *
 * Every function that can fail returns 0 or a code: 1 bad input, 2 wrong use,
 * 3 over the planned memory, 4 unsupported, 70 a bug in tmc, 74 an error of the
 * system (disk full, out of memory, a processor without the step's
 * instructions). tmc_last_error() then returns one sentence, valid until the
 * thread's next call. Only one thread at a time may use a step.
 *
 * A program that was compiled with an older or a newer tmc.h of this version
 * works with a library: functions and fields are only added, fields at the end.
 * So each struct begins with its size, as the program knows the struct. The
 * program sets `size` (tmc_options_init sets that of options), and a library
 * reads and fills no more than that. A size that no tmc.h of this version has
 * is refused (2). Options that are set, but unknown to the library, are refused
 * (4); fields of a result that are unknown to it become 0.
 *
 * Several steps in one program: give all of them except one their own name,
 * `tmc compile --name gan_d`. The library is then libgan_d.so, and the
 * functions are gan_d_step_create and so on, declared in its step.h. The types
 * are those of this header. Pass a step only to the functions of its own
 * library. Libraries without a name can be loaded side by side with dlopen.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TMC_RUNTIME_TMC_H
#define TMC_RUNTIME_TMC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TMC_API __attribute__((visibility("default")))

/* The version of this interface. It changes when a function or a struct does,
 * in another way than by additions. */
#define TMC_ABI_VERSION 1

typedef struct tmc_step tmc_step;

/* A call between ranks that moves bytes, and blocks until they are there. Not
 * 0: it failed, and the step is void. `axis` is 0 for data, 1 for tensor, 2 for
 * pipeline parallelism. */
typedef int (*tmc_transfer)(void *context, int32_t axis, void *to,
                            const void *from, int64_t bytes, int64_t total);

/* The `bytes` bytes of rank `from` go to all ranks. */
typedef int (*tmc_share)(void *context, int32_t axis, int32_t from, void *data,
                         int64_t bytes);

/* The ranks of a step of tmc compile --devices, as the program connects them.
 * Each rank runs its own step, and all of a group make the same calls in one
 * order. A step makes one call at a time, from any thread. */
typedef struct tmc_peers {
  uint32_t size;
  int32_t ranks[3]; /* along each axis */
  int32_t place[3]; /* of this rank, from 0 */
  void *context;    /* for the calls; valid until the step is destroyed */
  /* The `bytes` bytes of each rank r go to `to` + r * bytes, on all ranks, but
   * none beyond `to` + total. `from` may be this rank's own place in `to`. */
  tmc_transfer gather;
  /* Piece r of `from` goes to rank r, and piece r of `to` comes from it. Pieces
   * lie `bytes` bytes apart. `from` has `total` bytes: the last pieces may be
   * shorter, or empty. */
  tmc_transfer exchange;
  /* Between two steps: for reads of tensors of which each rank keeps a part,
   * and for files, which also gather. All ranks read, and all save. */
  tmc_share share;
} tmc_peers;

typedef struct tmc_options {
  uint32_t size;
  int32_t threads;      /* cpu: 0: one per core */
  int32_t host_threads; /* for updates on the host; 0: the free cores */
  int32_t guard_pages;  /* cpu: 1: unmapped pages around the arena (default) */
  int32_t poison;       /* 1: overwrite each buffer at its death */
  int32_t check_finite; /* 1: fail at the first launch that makes NaN or Inf */
  int32_t no_graph;     /* cuda: 1: each step queues its launches one by one */
  uint64_t seed;        /* of dropout and other draws; default 0 */
  /* For plans that move values: */
  const char *nvme_directory;   /* of the swap file; null: the directory of
                                   tmc compile --nvme */
  double link_bytes_per_second; /* cpu: of copies, each way; 0: no limit */
  const tmc_peers *peers;       /* of a step for several devices, else null */
} tmc_options;

/* Element types, in the order of tmc::DType. */
typedef enum tmc_dtype {
  TMC_F32,
  TMC_F16,
  TMC_BF16,
  TMC_F64,
  TMC_I1,
  TMC_I8,
  TMC_U8,
  TMC_I16,
  TMC_U16,
  TMC_I32,
  TMC_I64,
  TMC_F8E4M3,
  TMC_F8E5M2
} tmc_dtype;

/* In the order of tmc::Role. */
typedef enum tmc_role {
  TMC_PARAM,
  TMC_STATE,
  TMC_MOMENT,
  TMC_BATCH,
  TMC_SCALAR,
  TMC_OUTPUT,
  TMC_COPY /* a 16-bit copy of a parameter, updated only with the parameter */
} tmc_role;

typedef struct tmc_tensor {
  uint32_t size;
  tmc_dtype dtype;
  const char *name;
  tmc_role role;
  int32_t rank;
  int64_t dims[8];
  int64_t bytes;
  int32_t trainable;
  int32_t fed; /* 1: the step writes it: the learning rate, seeds, numbers of
                  samples. Each other batch and scalar tensor is an input. */
} tmc_tensor;

/* The numbers of DLPack. */
typedef enum tmc_device { TMC_DEVICE_CPU = 1, TMC_DEVICE_CUDA = 2 } tmc_device;

/* The bytes of a tensor, at their place in the step's arena. */
typedef struct tmc_view {
  uint32_t size;
  tmc_dtype dtype;
  void *data; /* of `device` */
  tmc_device device;
  int32_t device_number; /* of the CUDA runtime; cpu: 0 */
  int32_t rank;
  int32_t read_only; /* 1: writing there breaks the step */
  int64_t dims[8];
  int64_t strides[8]; /* in elements; the last dimension's is 1 */
  int64_t bytes;
} tmc_view;

typedef struct tmc_statistics {
  uint32_t size;
  int64_t arena_bytes;      /* of the device, planned and mapped */
  int64_t high_water_bytes; /* touched pages of that arena */
  int64_t allocations; /* of more than 1 KiB outside it, in the last step */
  int64_t largest_allocation_bytes; /* outside it, in the last step */
  int64_t steps;                    /* done so far, including resumed ones */
  double last_step_seconds;
  double grad_norm;      /* of the last step; NaN if it isn't computed */
  double loss_scale;     /* of the next step; NaN if there is none */
  int64_t skipped_steps; /* so far, with gradients that weren't finite */
  int64_t saturations;   /* so far, of 8-bit codes; -1: scales always fit */
} tmc_statistics;

/* A memory in which the step keeps bytes. */
typedef struct tmc_space {
  uint32_t size;
  const char *name;         /* "device", "host", "file" */
  int64_t arena_bytes;      /* planned; 0 if the plan keeps nothing there */
  int64_t high_water_bytes; /* touched pages of the arena; 0 for a file */
} tmc_space;

/* The TMC_ABI_VERSION that the library was built with. */
TMC_API int32_t tmc_abi_version(void);

/* Sets the defaults, and options->size to `size`, which is sizeof *options. */
TMC_API void tmc_options_init(tmc_options *options, uint32_t size);

/* Maps the arena and prepares the kernels. Loads no values yet. If `options` is
 * null, the defaults are used. */
TMC_API int tmc_step_create(const tmc_options *options, tmc_step **step);
/* The same for the step with this identity; a library with another identity is
 * refused (2). step.h maps tmc_step_create to this function, because a program
 * may find another library than that of the step.h of its compilation. */
TMC_API int tmc_step_create_of(const char *identity, const tmc_options *options,
                               tmc_step **step);
TMC_API void tmc_step_destroy(tmc_step *step);

/* The last error of this thread, or "". */
TMC_API const char *tmc_last_error(void);

/* Identifies a compilation; that of step.h is TMC_STEP_IDENTITY. */
TMC_API const char *tmc_step_identity(void);

/* Set parameters and states: from files by name, or at random. `path` is a
 * safetensors file, several with commas between them, an index of shards or a
 * folder of Hugging Face. If it is null, the values are those that the
 * compilation recorded or copied beside the library; 2 if it left none, or not
 * all of them. Adapters that no file has start by their rules. A parameter that
 * isn't trained is never random if it has a value, or if the compilation left
 * one. */
TMC_API int tmc_step_load(tmc_step *step, const char *path);
TMC_API int tmc_step_init_random(tmc_step *step, uint64_t seed);

/* The tensors that can be accessed by name. */
TMC_API int64_t tmc_step_tensor_count(const tmc_step *step);
TMC_API int tmc_step_tensor(const tmc_step *step, int64_t index,
                            tmc_tensor *tensor);

/* Copy whole tensors; `bytes` must be the tensor's size. Batch inputs must be
 * written before the first step, and stay until they are written again. Integer
 * inputs are checked against their range. */
TMC_API int tmc_step_write(tmc_step *step, const char *name, const void *data,
                           int64_t bytes);
TMC_API int tmc_step_read(tmc_step *step, const char *name, void *data,
                          int64_t bytes);

/* A tensor that stays at its place, without a copy. The place is valid until
 * the step is destroyed. Between two calls on the step its bytes are the values
 * that tmc_step_read copies; during a call don't touch them. On cuda, finish
 * your own work on them before the next call.
 * Values written there count as those of tmc_step_write, if the tensor had
 * values before. Integer inputs are checked against their range as a step
 * begins. Tensors that the step writes by itself are read-only, and so are
 * outputs, 16-bit copies, and parameters that have such copies.
 * 4: the plan moves the tensor to or from the host or a file, or keeps other
 * values at its place within a step, or stores it as codes. */
TMC_API int tmc_step_view(tmc_step *step, const char *name, tmc_view *view);
/* The same for other libraries, as a tensor of DLPack 1 (or of DLPack before
 * it, which can't say that a tensor is read-only: then 4). The program calls
 * its deleter, from any thread, and the bytes stay valid until then, even if
 * the step is destroyed. The library must stay loaded. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
TMC_API int tmc_step_dlpack(tmc_step *step, const char *name,
                            struct DLManagedTensorVersioned **tensor);
TMC_API int tmc_step_dlpack_unversioned(tmc_step *step, const char *name,
                                        struct DLManagedTensor **tensor);

TMC_API void tmc_step_set_learning_rate(tmc_step *step, double learning_rate);

/* Runs one training step. `loss` may be null. */
TMC_API int tmc_step_run(tmc_step *step, double *loss);

/* Computes the loss of the inputs that were written, as a step does, but
 * without dropout and without a gradient. Parameters, states, moments, counts
 * and the position in random numbers stay as they are, so that the next steps
 * have the same bits with and without it. Normalizations over the batch take
 * the batch's own statistics, as in training. The output of the loss, read by
 * name, is then the evaluation's. `loss` may be null. 4 if the step can't do
 * it: a forward pass that draws random numbers in another way than dropout. */
TMC_API int tmc_step_evaluate(tmc_step *step, double *loss);

/* A checkpoint is a directory, which is replaced atomically. Several ranks
 * write it together, each from its own step, or fail together. save writes
 * trained parameters, states, moments, the counts of steps and of batches, and
 * the seed; resume reads them back. Parameters that aren't trained keep their
 * values in resume, or come from what the compilation left beside the library;
 * a checkpoint with others is refused. A finite value is never replaced by a
 * non-finite one. */
TMC_API int tmc_step_save(tmc_step *step, const char *directory);
/* Writes the model to directory/model.safetensors, under the names of its
 * state_dict: floats in `type` ("f32", "bf16", "f16"), rounded to nearest, or
 * in the step's types if `type` is null. */
TMC_API int tmc_step_save_weights(tmc_step *step, const char *directory,
                                  const char *type);
TMC_API int tmc_step_resume(tmc_step *step, const char *directory);

/* The adapters of a step of `tmc compile --lora`, and what it trains whole, in
 * PEFT's files: adapter_model.safetensors and adapter_config.json, under the
 * names of the files that the base came from. load_adapter wants all values of
 * the step to be there; moments and counts stay. 2: the step has no adapters.
 */
TMC_API int tmc_step_save_adapter(tmc_step *step, const char *directory);
TMC_API int tmc_step_load_adapter(tmc_step *step, const char *directory);

TMC_API int tmc_step_get_statistics(const tmc_step *step,
                                    tmc_statistics *statistics);

/* The memories of the step; number 0 is the device's. */
TMC_API int64_t tmc_step_space_count(const tmc_step *step);
TMC_API int tmc_step_space(const tmc_step *step, int64_t index,
                           tmc_space *space);

#ifdef __cplusplus
}
#endif

#endif /* TMC_RUNTIME_TMC_H */
