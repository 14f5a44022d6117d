/* Mendel's second C interface: optimizes and verifies models. mendel.h, the first, runs plans.
 *
 * Link with -lmendel. Functions return MENDEL_OK, or another status and a sentence in
 * mendel_last_error(). Nothing here throws, prints, ends the process or changes signal handlers.
 * Optimizing and comparing use all memory and threads that they are given; one such call runs at a
 * time in a process, and a second one waits for it. All functions may be called from any thread.
 * Text is UTF-8, and ends with a zero byte.
 */
#ifndef MENDEL_CLIENT_C_API_MENDEL_OPTIMIZER_H_
#define MENDEL_CLIENT_C_API_MENDEL_OPTIMIZER_H_

#include "mendel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An ONNX model: a file, or bytes in memory.
 *
 * `bytes` NULL: the file at `path`. Otherwise `bytes` are the model, `path` is its name in messages
 * (NULL: "model"), and external data are in the folder of `path`, which then must contain a '/'.
 * The bytes are copied by the functions that keep them. */
typedef struct mendel_model {
  const char* path;
  const void* bytes;
  size_t size;
} mendel_model;

/* A stop token: long calls end soon after it is requested. */
typedef struct mendel_stop mendel_stop;
MENDEL_API mendel_stop* mendel_stop_new(void);
/* From any thread, and from signal handlers. It cannot be taken back. */
MENDEL_API void mendel_stop_request(mendel_stop* stop);
/* Not while a call uses it; NULL is allowed. */
MENDEL_API void mendel_stop_free(mendel_stop* stop);

/* How a long call works; later versions add members at the end. */
typedef struct mendel_call {
  size_t size; /* sizeof(mendel_call) */
  /* Options of `mendel optimize` or `mendel verify` as on the command line, NULL at the end, e.g.
   * {"--budget=30s", "--threads=2", "--shapes=input:1x3x224x224", NULL}. NULL: the defaults. */
  const char* const* options;
  /* Called from the working thread with one JSON object, at most four times a second and at every
   * new phase: {"phase":"search","detail":"merge_convs","candidates":12,
   * "candidates_per_second":3.5,"best_speedup":1.2,"seconds_left":41.0}; `seconds_left` is negative
   * where a phase has no limit. No call begins after a stop is requested. NULL: none. */
  void (*progress)(void* user, const char* json);
  void* user;
  mendel_stop* stop; /* NULL: the call cannot be stopped */
} mendel_call;

/* A text that the library made. */
MENDEL_API void mendel_text_free(char* text);

/* Optimized programs: certified plans of one model, not compiled. Immutable: threads may share
 * one. */
typedef struct mendel_program mendel_program;

/* Optimizes `model` as `mendel optimize` does. A stop ends the search, and the best program so far
 * is certified; MENDEL_STOPPED when the search had not begun. `call` NULL: the defaults. */
MENDEL_API mendel_status mendel_optimize(const mendel_model* model, const mendel_call* call,
                                         mendel_program** program);

/* Reads the plan file at `path`, which must not change while the program lives. */
MENDEL_API mendel_status mendel_program_read(const char* path, mendel_program** program);

/* Writes a plan file (several members: a bundle), which replaces `path` at once. */
MENDEL_API mendel_status mendel_program_write(const mendel_program* program, const char* path);

/* Writes the optimized graph of member number `member` as an ONNX model of standard operators. */
MENDEL_API mendel_status mendel_program_export(const mendel_program* program, int member,
                                               const char* path);

/* One JSON object: "members", an array with what `mendel explain --json` reports on each, its
 * "inputs" and "certificate", and "report", what `mendel optimize --json` reports (null for a
 * program that was read). */
MENDEL_API mendel_status mendel_program_facts(const mendel_program* program, char** json);

/* Compiles the program; the handle is one of mendel.h (mendel_run, mendel_free). `options` NULL:
 * the defaults. */
MENDEL_API mendel_status mendel_program_compile(const mendel_program* program,
                                                const mendel_load_options* options,
                                                mendel_plan** plan);

/* NULL is allowed. Plans that were compiled from it live on. */
MENDEL_API void mendel_program_free(mendel_program* program);

/* Compares two models (or plan files, by path) as `mendel verify A B` does. `json` receives the
 * object that the command prints with --json (docs/verify.md). A "no" is an answer, not an error.
 * The option --memory-limit is refused: it needs a process of its own. */
MENDEL_API mendel_status mendel_verify(const mendel_model* a, const mendel_model* b,
                                       const mendel_call* call, char** json);

/* Compiles a model as it is: default algorithms, no search, no certificate. `shapes` is the text of
 * --shapes that fixes symbolic dimensions, e.g. "input:1x3x224x224"; NULL: none. `options` NULL or
 * with 0 threads: one thread for each physical core that the process may use. */
MENDEL_API mendel_status mendel_compile_model(const mendel_model* model, const char* shapes,
                                              const mendel_load_options* options,
                                              mendel_plan** plan);

/* Bounds of the plans that a handle of mendel_open_model keeps: the least recently used ones are
 * dropped, those of mendel_adopt last. Later versions add members at the end. */
typedef struct mendel_dynamic_limits {
  size_t size;   /* sizeof(mendel_dynamic_limits) */
  size_t plans;  /* 0: 16 */
  int64_t bytes; /* of activations and weights; 0: 2^30 */
} mendel_dynamic_limits;

/* Opens a model whose symbolic dimensions stay open. mendel_select_shapes, mendel_select_inputs and
 * mendel_run_shapes take one shape for each input that the model declares, in order, make the plan
 * for new shapes as mendel_compile_model does, and keep it. Their errors name the input and the
 * dimension. Before the first, the handle has no inputs; it has no members. mendel_free frees it.
 * `options` and `limits` NULL: the defaults; threads as for mendel_compile_model. */
MENDEL_API mendel_status mendel_open_model(const mendel_model* model,
                                           const mendel_load_options* options,
                                           const mendel_dynamic_limits* limits, mendel_plan** plan);

/* Compiles all members of `program`, an optimized form of the model of `plan` (mendel_open_model).
 * They replace the plans for their shapes. Shapes must be selected again before the next run. */
MENDEL_API mendel_status mendel_adopt(mendel_plan* plan, const mendel_program* program);

/* The plans of a handle of mendel_open_model; later versions add members at the end. */
typedef struct mendel_dynamic_use {
  size_t size;     /* sizeof(mendel_dynamic_use) */
  size_t plans;    /* kept now */
  int64_t bytes;   /* of their activations and weights */
  int64_t hits;    /* selections that found a plan */
  int64_t made;    /* plans that were made for new shapes */
  int64_t dropped; /* plans that exceeded the limits */
} mendel_dynamic_use;

/* Fills `use`, whose `size` the caller sets. */
MENDEL_API mendel_status mendel_dynamic_use_of(const mendel_plan* plan, mendel_dynamic_use* use);

/* The interface as the model declares it: {"inputs":[{"name":"x","type":"f32",
 * "shape":[1,"height",null]}],"outputs":[...],"producer_name":"","graph_name":"","domain":"",
 * "description":"","version":0,"metadata":{}}. A symbolic dimension is its name, or null; so is a
 * shape that the model does not declare. */
MENDEL_API mendel_status mendel_describe_model(const mendel_model* model, char** json);

#ifdef __cplusplus
}
#endif

#endif /* MENDEL_CLIENT_C_API_MENDEL_OPTIMIZER_H_ */
