/* Runs a plan on inputs of zeros and prints the first elements of every output.
 *
 *   cc run_plan.c -lmendel -o run_plan && ./run_plan model.plan [threads]
 */
#include <mendel.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, mendel_last_error());
  return 1;
}

static void print_value(const char* kind, const mendel_value* value) {
  printf("%s %s [", kind, value->name);
  for (int d = 0; d < value->rank; ++d)
    printf(d > 0 ? ",%lld" : "%lld", (long long)value->shape[d]);
  printf("] %zu bytes\n", value->bytes);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_plan PLAN [THREADS]\n");
    return 2;
  }
  mendel_plan* plan = mendel_load(argv[1], argc > 2 ? atoi(argv[2]) : 0);
  if (plan == NULL) return fail("load");
  const int input_count = mendel_input_count(plan);
  const int output_count = mendel_output_count(plan);
  void** inputs = calloc((size_t)input_count + 1, sizeof(void*));
  void** outputs = calloc((size_t)output_count + 1, sizeof(void*));
  mendel_value value;
  for (int k = 0; k < input_count; ++k) {
    if (mendel_input(plan, k, &value) != MENDEL_OK) return fail("input");
    print_value("input", &value);
    inputs[k] = calloc(value.bytes + 1, 1);
  }
  for (int k = 0; k < output_count; ++k) {
    if (mendel_output(plan, k, &value) != MENDEL_OK) return fail("output");
    print_value("output", &value);
    outputs[k] = calloc(value.bytes + 1, 1);
  }
  if (mendel_run(plan, (const void* const*)inputs, outputs) != MENDEL_OK) return fail("run");
  for (int k = 0; k < output_count; ++k) {
    mendel_output(plan, k, &value);
    if (value.dtype != MENDEL_F32) continue;
    printf("%s:", value.name);
    for (size_t i = 0; i < 4 && i < value.bytes / sizeof(float); ++i)
      printf(" %g", (double)((const float*)outputs[k])[i]);
    printf("\n");
  }
  for (int k = 0; k < input_count; ++k) free(inputs[k]);
  for (int k = 0; k < output_count; ++k) free(outputs[k]);
  free(inputs);
  free(outputs);
  mendel_free(plan);
  return 0;
}
