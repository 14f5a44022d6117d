// Instances of every axiom, and what only looks like one.
#ifndef MENDEL_VERIFIER_AXIOMS_AXIOMS_CASES_H_
#define MENDEL_VERIFIER_AXIOMS_AXIOMS_CASES_H_

#include <ostream>

namespace mendel::axioms_test {

/// The two sides of an instance of an axiom; or of what looks like one and is none.
struct Pair {
  const char* axiom;
  const char* left;
  const char* right;
};

inline void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.axiom << ": " << pair.left << " | " << pair.right;
}

inline constexpr Pair kTrue[] = {
    // Activations.
    {"elu, celu and selu by exponentials", "Elu(x){alpha = 0.5}",
     "Where(Less(x, 0), Mul(0.5, Sub(Exp(x), 1)), x)"},
    {"elu, celu and selu by exponentials", "Celu(x){alpha = 2.0}", "Mul(2, Elu(Div(x, 2)))"},
    {"elu, celu and selu by exponentials", "Selu(x){alpha = 1.5, gamma = 0.75}",
     "Where(Less(x, 0), Mul(Mul(1.5, Sub(Exp(x), 1)), 0.75), Mul(x, 0.75))"},
    {"gelu by erf", "Gelu(x)", "Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142135381698608)), 1))"},
    {"gelu by erf", "Gelu(x)", "Mul(x, Mul(0.5, Add(1, Erf(Mul(x, 0.70710676908493042)))))"},
    {"gelu by erf", "Gelu(x)", "Mul(0.5, Mul(x, Add(Erf(Div(x, Sqrt(2))), 1)))"},
    {"gelu by tanh", "Gelu(x){approximate = \"tanh\"}",
     "Mul(Mul(0.5, x), Add(1, Tanh(Mul(0.79788458347320556, Add(x, Mul(0.044714998453855515, "
     "Pow(x, 3)))))))"},
    {"hard sigmoid and hard swish by clip", "HardSwish(x)",
     "Div(Mul(x, Clip(Add(x, 3)){min = 0.0, max = 6.0}), 6)"},
    {"hard sigmoid and hard swish by clip", "HardSwish(x)",
     "Mul(x, HardSigmoid(x){alpha = 0.16666667163372039, beta = 0.5})"},
    {"hard sigmoid and hard swish by clip", "HardSigmoid(x){alpha = 0.25, beta = 0.5}",
     "Max(Min(Add(Mul(x, 0.25), 0.5), 1), 0)"},
    {"leaky relu as an extreme", "LeakyRelu(x){alpha = 0.25}", "Max(Mul(x, 0.25), x)"},
    {"leaky relu as an extreme", "LeakyRelu(x){alpha = -0.25}", "Max(x, Mul(x, -0.25))"},
    {"leaky relu as an extreme", "Mul(4, LeakyRelu(x){alpha = 0.25})", "Max(Mul(x, 4), x)"},
    {"leaky relu as an extreme", "Neg(LeakyRelu(Neg(x)){alpha = 0.5})", "Min(x, Mul(0.5, x))"},
    {"leaky relu by relu", "LeakyRelu(x){alpha = 0.25}", "PRelu(x, 0.25)"},
    {"leaky relu by relu", "LeakyRelu(x){alpha = 0.25}", "Sub(Relu(x), Mul(0.25, Relu(Neg(x))))"},
    {"leaky relu by relu", "LeakyRelu(x){alpha = 0.25}", "Where(Less(x, 0), Mul(x, 0.25), x)"},
    {"softsign by absolute value", "Softsign(x)", "Div(x, Add(1, Abs(x)))"},
    {"thresholded relu by where", "ThresholdedRelu(x){alpha = 0.5}", "Where(Less(0.5, x), x, 0)"},
    // Sums and products.
    {"common factor", "Relu(Add(Mul(x, 3), Mul(y, 3)))", "Mul(3, Relu(Add(x, y)))"},
    {"commutative operands", "Exp(Erf(Add(x, y)))", "Exp(Erf(Add(y, x)))"},
    {"factor of a linear operator", "Relu(Transpose(Mul(x, 3)){perm = [0, 2, 1]})",
     "Mul(3, Relu(Transpose(x){perm = [0, 2, 1]}))"},
    {"factor of a linear operator", "Relu(MatMul(Neg(m), Mul(m, 2)))",
     "Mul(2, Relu(Neg(MatMul(m, m))))"},
    {"merged literals", "Erf(Add(Add(x, 2), 0.5))", "Erf(Add(x, 2.5))"},
    {"merged literals", "Erf(Div(Mul(x, 6), 3))", "Erf(Mul(x, 2))"},
    {"neutral literal", "Erf(Mul(Add(x, 0), 1))", "Erf(x)"},
    {"neutral literal", "Erf(Div(1, Exp(x)))", "Erf(Reciprocal(Exp(x)))"},
    {"ring of integers", "Mul(Add(q, q2), Three8)", "Add(Mul(q2, Three8), Mul(Three8, q))"},
    {"ring of integers", "Sub(q, Neg(q2))", "Add(q2, q)"},
    {"ring of integers", "Sub(Add(q, Three8), Three8)", "Sub(q2, Sub(q2, q))"},
    {"outer sign", "Erf(Neg(Neg(x)))", "Erf(x)"},
    {"outer sign", "Abs(Add(Neg(x), y))", "Abs(Sub(x, y))"},
    {"outer sign", "Erf(Mul(Neg(x), y))", "Neg(Erf(Mul(x, y)))"},
    {"quotient as a product", "Erf(Div(x, Exp(y)))", "Erf(Mul(x, Reciprocal(Exp(y))))"},
    {"reciprocal of a reciprocal", "Erf(Div(x, Reciprocal(Exp(y))))", "Erf(Mul(x, Exp(y)))"},
    {"reciprocal of a reciprocal", "Erf(Reciprocal(Div(Exp(x), Add(1, Exp(y)))))",
     "Erf(Div(Add(1, Exp(y)), Exp(x)))"},
    {"reciprocal of a reciprocal", "Erf(Reciprocal(Reciprocal(Add(1, Exp(y)))))",
     "Erf(Add(1, Exp(y)))"},
    {"uniform literal", "Relu(Mul(x, Full3))", "Mul(Relu(x), 3)"},
    {"factors of a literal expression", "Mul(x, Mul(0.3, 0.7))", "Mul(Mul(x, 0.7), 0.3)"},
    {"factors of a literal expression", "Div(x, Div(0.3, 0.7))", "Div(Mul(x, 0.7), 0.3)"},
    {"literal of an expression", "Add(x, Mul(0.1, 0.3))", "Add(x, 0.030000001192092896)"},
    {"literal of an expression", "Mul(x, Exp(0.5))", "Mul(x, 1.6487212181091309)"},
    {"root of a literal", "Mul(x, Sqrt(9))", "Mul(x, 3)"},
    {"square of a rounded root", "Mul(Mul(x, 0.35355339), 0.35355339)", "Mul(x, 0.125)"},
    {"square of a rounded root", "Mul(Mul(x, 0.37991784), 0.37991784)", "Mul(x, 0.14433757)"},
    {"square of a rounded root", "Div(Div(x, 2.6321480), 2.6321480)", "Div(x, 6.9282032)"},
    {"rounded literal", "Relu(Mul(x, 0.1111111119389534))", "Div(Relu(x), 9)"},
    {"rounded literal", "Erf(Div(x, 3.4641015529632568))", "Erf(Mul(x, 0.28867512941360474))"},
    // Limits.
    {"clip as min and max", "Clip(x){min = -1.0, max = 2.0}", "Min(Max(x, -1), 2)"},
    {"clip as min and max", "Relu(x)", "Max(0, x)"},
    {"clip as min and max", "Sub(x, Relu(x))", "Min(x, 0)"},
    {"clip as min and max", "Clip(x){min = 0.0}", "Relu(x)"},
    {"clip of a clip", "Relu(Relu(x))", "Relu(x)"},
    {"clip of a clip", "Clip(Relu(x)){min = -5.0, max = 6.0}", "Min(Relu(x), 6)"},
    {"clip of a clip", "Clip(Clip(x){min = 0.0, max = 1.0}){min = 2.0, max = 3.0}",
     "Clip(x){min = 2.0, max = 2.0}"},
    {"clip of a multiple", "Relu(Mul(x, 3))", "Mul(Relu(x), 3)"},
    {"clip of a multiple", "Clip(Mul(x, 2)){min = -1.0, max = 3.0}",
     "Mul(Clip(x){min = -0.5, max = 1.5}, 2)"},
    {"clip of a multiple", "Relu(Mul(x, -2))", "Mul(2, Sub(Relu(x), x))"},
    {"clip of a shifted value", "Clip(Add(x, 3)){min = 0.0, max = 6.0}",
     "Add(Clip(x){min = -3.0, max = 3.0}, 3)"},
    {"relu of a product", "Relu(Mul(x, Exp(y)))", "Mul(Relu(x), Exp(y))"},
    {"relu of a product", "Relu(Div(x, Add(1, Mul(y, y))))", "Div(Relu(x), Add(1, Mul(y, y)))"},
    {"relu of no negative value", "Relu(Mul(x, x))", "Mul(x, x)"},
    {"relu of no negative value", "Relu(Sigmoid(x))", "Sigmoid(x)"},
    // Extremes.
    {"absolute value", "Abs(Abs(x))", "Abs(x)"},
    {"absolute value", "Max(x, Neg(x))", "Abs(x)"},
    {"absolute value", "Abs(Mul(x, -3))", "Mul(3, Abs(x))"},
    {"extreme of limited values", "Max(Relu(x), y)", "Relu(Max(x, y))"},
    {"extreme of limited values", "ReduceMax(Relu(x)){axes = [1], keepdims = 0}",
     "Relu(ReduceMax(x){axes = [1], keepdims = 0})"},
    {"extreme of multiples", "Max(Neg(x), Neg(y))", "Neg(Min(x, y))"},
    {"extreme of multiples", "ReduceMax(Mul(x, 3)){axes = [1], keepdims = 1}",
     "Mul(ReduceMax(x){axes = [1], keepdims = 1}, 3)"},
    {"extreme of multiples", "ReduceMin(Neg(x)){axes = [1], keepdims = 1}",
     "Neg(ReduceMax(x){axes = [1], keepdims = 1})"},
    {"extreme of shifted values", "Max(Add(x, 3), Add(y, 3))", "Add(Max(x, y), 3)"},
    {"extreme of shifted values", "ReduceMin(Add(x, 3)){axes = [2], keepdims = 0}",
     "Add(ReduceMin(x){axes = [2], keepdims = 0}, 3)"},
    {"nested extremes", "Max(Max(x, y), s)", "Max(x, Max(s, y))"},
    {"nested extremes", "Min(Min(x, y), Min(y, x))", "Min(x, y)"},
    {"nested reductions to an extreme",
     "ReduceMax(ReduceMax(x){axes = [1], keepdims = 0}){axes = [1], keepdims = 0}",
     "ReduceMax(x){axes = [1, 2], keepdims = 0}"},
    // Pools.
    {"pool of a pool",
     "MaxPool(MaxPool(z){kernel_shape = [5, 5], strides = [1, 1], pads = [2, 2, 2, 2], dilations = "
     "[1, 1]}){kernel_shape = [5, 5], "
     "strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1]}",
     "MaxPool(z){kernel_shape = [9, 9], strides = [1, 1], pads = [4, 4, 4, 4], dilations = [1, "
     "1]}"},
    {"pool of a pool",
     "MaxPool(MaxPool(z){kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = "
     "[1, 1]}){kernel_shape = [2, 2], "
     "strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}",
     "MaxPool(z){kernel_shape = [4, 4], strides = [4, 4], pads = [0, 0, 0, 0], dilations = [1, "
     "1]}"},
    {"pool of a pool",
     "MaxPool(MaxPool(z){kernel_shape = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = "
     "[1, 1]}){kernel_shape = [3, 3], "
     "strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]}",
     "MaxPool(z){kernel_shape = [5, 5], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, "
     "1]}"},
    {"pool of an increasing function",
     "MaxPool(Relu(z)){kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = "
     "[1, 1]}",
     "Relu(MaxPool(z){kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = "
     "[1, 1]})"},
    // Powers and roots.
    {"power with a literal exponent", "Pow(x, 2)", "Mul(x, x)"},
    {"power with a literal exponent", "Pow(x, 5)", "Mul(Mul(Mul(x, x), Mul(x, x)), x)"},
    {"power with a literal exponent", "Pow(Exp(x), -0.5)", "Reciprocal(Sqrt(Exp(x)))"},
    {"power with a literal exponent", "Erf(Pow(Exp(x), 1.5))", "Erf(Mul(Exp(x), Sqrt(Exp(x))))"},
    {"root of a product", "Sqrt(Mul(Exp(x), 4))", "Mul(2, Sqrt(Exp(x)))"},
    {"root of a product", "Sqrt(Div(Abs(x), Exp(y)))", "Div(Sqrt(Abs(x)), Sqrt(Exp(y)))"},
    {"root of a square", "Sqrt(Mul(x, x))", "Abs(x)"},
    {"square of a root", "Mul(Sqrt(Exp(x)), Sqrt(Exp(x)))", "Exp(x)"},
    {"square of a root", "Div(Exp(x), Sqrt(Exp(x)))", "Sqrt(Exp(x))"},
    // Exponentials.
    {"exponential of a sum", "Exp(Add(x, y))", "Mul(Exp(x), Exp(y))"},
    {"exponential of a sum", "Exp(Sub(x, y))", "Div(Exp(x), Exp(y))"},
    {"exponential of a whole multiple", "Exp(Mul(x, 3))", "Mul(Exp(x), Mul(Exp(x), Exp(x)))"},
    {"factor constant along the reduced axes", "MatMul(m, Div(x, h))", "Div(MatMul(m, x), h)"},
    {"factor constant along the reduced axes", "MatMul(m, Mul(h, x))", "Mul(MatMul(m, x), h)"},
    {"masked softmax", "Softmax(Add(x, Masked)){axis = 2}",
     "Div(Mul(Exp(x), Kept), ReduceSum(Mul(Kept, Exp(x))){axes = [2], keepdims = 1})"},
    {"factor constant along the reduced axes",
     "Erf(ReduceSum(Mul(x, h)){axes = [1], keepdims = 1})",
     "Erf(Mul(ReduceSum(x){axes = [1], keepdims = 1}, h))"},
    {"logarithm of a product", "Log(Mul(Exp(x), Add(1, Exp(y))))", "Add(x, Log(Add(1, Exp(y))))"},
    {"logarithm of a product", "Log(Sqrt(Add(1, Exp(x))))", "Mul(0.5, Log(Add(1, Exp(x))))"},
    {"logarithm of an exponential", "Log(Exp(x))", "x"},
    {"logarithm of an exponential", "Exp(Log(Add(1, Exp(x))))", "Add(1, Exp(x))"},
    {"odd and even functions", "Erf(Mul(x, -2))", "Neg(Erf(Mul(x, 2)))"},
    {"odd and even functions", "Cos(Neg(x))", "Cos(x)"},
    {"sigmoid and tanh by exponentials", "Sigmoid(x)", "Div(1, Add(1, Exp(Neg(x))))"},
    {"sigmoid and tanh by exponentials", "Sigmoid(x)", "Div(Exp(x), Add(1, Exp(x)))"},
    {"sigmoid and tanh by exponentials", "Tanh(x)", "Sub(Mul(2, Sigmoid(Mul(2, x))), 1)"},
    {"sigmoid and tanh by exponentials", "Sigmoid(Neg(x))", "Sub(1, Sigmoid(x))"},
    {"softmax by exponentials", "Softmax(x){axis = 1}",
     "Softmax(Sub(x, ReduceMax(x){axes = [1], keepdims = 1})){axis = 1}"},
    {"softmax by exponentials", "Softmax(x){axis = 1}",
     "Div(Exp(Sub(x, h)), ReduceSum(Exp(Sub(x, h))){axes = [1], keepdims = 1})"},
    {"softmax by exponentials", "LogSoftmax(x){axis = 2}",
     "Sub(Sub(x, ReduceMax(x){axes = [2], keepdims = 1}), Log(ReduceSum(Exp(Sub(x, "
     "ReduceMax(x){axes = [2], keepdims = "
     "1}))){axes = [2], keepdims = 1}))"},
    {"softmax by exponentials", "LogSoftmax(x){axis = 2}", "Log(Softmax(x){axis = 2})"},
    {"softplus and mish by exponentials", "Mish(x)", "Mul(x, Tanh(Log(Add(1, Exp(x)))))"},
    // Logic.
    {"boolean identities", "Not(Not(b))", "b"},
    {"boolean identities", "And(b, b)", "Or(b, b)"},
    {"cast round trip", "Cast(Cast(x){to = \"f64\"}){to = \"f32\"}", "x"},
    {"cast round trip", "Cast(Cast(b){to = \"f32\"}){to = \"bool\"}", "b"},
    {"cast round trip", "Cast(Cast(q){to = \"f32\"}){to = \"i8\"}", "q"},
    {"comparison of multiples", "Less(Mul(x, 2), 0)", "Less(x, 0)"},
    {"comparison of multiples", "Less(Neg(x), Neg(y))", "Less(y, x)"},
    {"one order relation", "GreaterOrEqual(x, y)", "Not(Less(x, y))"},
    {"one order relation", "Greater(q, q2)", "Less(q2, q)"},
    {"one order relation", "Or(Less(x, y), Equal(y, x))", "LessOrEqual(x, y)"},
    {"where as an extreme", "Where(Greater(x, y), x, y)", "Max(x, y)"},
    {"where as leaky relu", "Where(Greater(x, 0), x, Mul(x, s))", "PRelu(x, s)"},
    {"pieces of a line", "Add(Relu(x), Relu(Neg(x)))", "Abs(x)"},
    {"pieces of a line", "Mul(Sign(x), x)", "Abs(x)"},
    {"pieces of a line", "Where(Greater(x, 0), Mul(2, x), Mul(x, -2))", "Mul(2, Abs(x))"},
    {"pieces of a line", "Sub(Relu(x), Relu(Sub(x, 6)))", "Clip(x){min = 0.0, max = 6.0}"},
    {"pieces of a line", "Where(Less(x, 6), Max(x, 0), 6)", "Min(Relu(x), 6)"},
    {"pieces of a line", "Where(Less(x, -0.5), -0.5, Where(Greater(x, 1.25), 1.25, x))",
     "Clip(x){min = -0.5, max = 1.25}"},
    {"pieces of a line", "Mul(x, Where(Less(x, 0), 0.1, 1))",
     "LeakyRelu(x){alpha = 0.10000000149011612}"},
    {"pieces of a line", "Where(GreaterOrEqual(x, 2), Sub(Mul(x, 3), 4), x)",
     "Add(x, Mul(2, Relu(Sub(x, 2))))"},
    {"where as leaky relu", "Where(Less(x, 0), Neg(x), x)", "Abs(x)"},
    {"where as leaky relu", "Where(GreaterOrEqual(x, 0), x, Neg(x))", "Abs(x)"},
    {"where at zero", "Where(Greater(x, 0), x, Sub(Exp(x), 1))", "Elu(x)"},
    {"where at zero", "Where(Less(0, x), Mul(x, y), Neg(Mul(2, x)))",
     "Where(Less(x, 0), Neg(Mul(x, 2)), Mul(y, x))"},
    {"where of equal branches or a known condition", "Where(Not(b), x, y)", "Where(b, y, x)"},
    {"where of equal branches or a known condition", "Where(True, x, y)", "x"},
    {"where of multiples", "Where(b, Mul(x, 3), Mul(y, 3))", "Mul(3, Where(b, x, y))"},
    // Normalizations.
    {"batch normalization by division",
     "BatchNormalization(z, c1, c2, c3, ReduceSum(Exp(x)){axes = [1, 2], keepdims = 0}){epsilon = "
     "0.5}",
     "Add(Mul(Sub(z, Reshape(c3){shape = [2, 1, 1]}), Div(Reshape(c1){shape = [2, 1, 1]}, "
     "Reshape(Sqrt(Add(ReduceSum(Exp(x)){axes "
     "= [1, "
     "2], keepdims = 0}, 0.5))){shape = [2, 1, 1]})), Reshape(c2){shape = [2, 1, 1]})"},
    {"local response normalization by a pool",
     "LRN(z){size = 3, alpha = 0.5, beta = 0.75, bias = 2.0}",
     "Div(z, Pow(Add(Mul(0.5, Reshape(AveragePool(Reshape(Mul(z, z)){shape = [1, 1, 2, 36]})"
     "{kernel_shape = [3, 1], strides = [1, 1], pads = [1, 0, 1, 0], dilations = [1, 1], "
     "count_include_pad = 1}){shape = [1, 2, 6, 6]}), 2), 0.75))"},
    {"normalization by division", "LayerNormalization(x, s){axis = 2, epsilon = 0.5}",
     "Mul(Div(Sub(x, ReduceMean(x){axes = [2], keepdims = 1}), Pow(Add(ReduceMean(Pow(Sub(x, "
     "ReduceMean(x){axes = [2], keepdims = "
     "1}), "
     "2)){axes = [2], keepdims = 1}, 0.5), 0.5)), s)"},
    {"variance by squares",
     "Sqrt(Sub(ReduceMean(Mul(x, x)){axes = [2], keepdims = 0}, Pow(ReduceMean(x){axes = [2], "
     "keepdims = 0}, 2)))",
     "Sqrt(ReduceMean(Pow(Sub(x, ReduceMean(x){axes = [2], keepdims = 1}), 2)){axes = [2], "
     "keepdims = 0})"},
    {"square of a root", "Mul(Reciprocal(Sqrt(Exp(y))), Div(1, Sqrt(Exp(y))))", "Div(1, Exp(y))"},
    {"root of a product", "Sqrt(Reciprocal(Exp(x)))", "Reciprocal(Sqrt(Exp(x)))"},
    {"normalization by division", "InstanceNormalization(z, c1, c2){epsilon = 0.5}",
     "GroupNormalization(z, c1, c2){num_groups = 2, epsilon = 0.5}"},
};

/// Not equal, or equal only under conditions that nobody guarantees.
inline constexpr Pair kFalse[] = {
    {"minimum by a comparison of NaN", "Where(Less(Log(x), 6), Log(x), 6)", "Min(Log(x), 6)"},
    {"relu by a comparison of NaN", "Where(Less(0, Log(x)), Log(x), 0)", "Relu(Log(x))"},
    {"piece by a comparison of NaN", "Where(Less(Log(x), 6), Relu(Log(x)), 6)",
     "Min(Relu(Log(x)), 6)"},
    {"negated comparison of NaN", "Where(LessOrEqual(Log(x), 6), x, y)",
     "Where(Less(6, Log(x)), y, x)"},
    {"branch that is undefined at zero", "Where(Less(0, x), Mul(x, Log(y)), x)",
     "Where(Less(x, 0), x, Mul(x, Log(y)))"},
    {"slope that is undefined", "Where(Less(x, 0), Mul(x, Log(y)), x)",
     "Add(Relu(x), Mul(Log(y), Sub(x, Relu(x))))"},
    {"slope of prelu that is undefined", "PRelu(x, Log(y))",
     "Add(Relu(x), Mul(Log(y), Sub(x, Relu(x))))"},
    {"product of one addend only", "Mul(Add(q, q2), Three8)", "Add(Mul(q2, Three8), q)"},
    {"difference of others", "Sub(q, q2)", "Sub(q2, q)"},
    {"relu of a negative multiple", "Relu(Mul(x, -2))", "Mul(Relu(x), -2)"},
    {"relu of a symbol's multiple", "Relu(Mul(x, s))", "Mul(Relu(x), s)"},
    {"relu of a quotient by a symbol", "Relu(Div(x, s))", "Div(Relu(x), s)"},
    {"leaky relu of a negative multiple", "LeakyRelu(Mul(x, -2)){alpha = 0.25}",
     "Mul(LeakyRelu(x){alpha = 0.25}, -2)"},
    {"extreme with another slope", "LeakyRelu(x){alpha = 0.25}", "Min(x, Mul(x, 0.25))"},
    {"where with a step at zero", "Where(Less(0, x), x, Add(x, 1))",
     "Where(Less(x, 0), Add(x, 1), x)"},
    {"where with an exponential step", "Where(Less(0, x), x, Exp(x))",
     "Where(Less(x, 0), Exp(x), x)"},
    {"other slope", "LeakyRelu(x){alpha = 0.25}", "PRelu(x, 0.5)"},
    {"pieces with a step", "Where(Less(x, 6), Max(x, 0), 5)", "Min(Relu(x), 6)"},
    {"pieces with a step at their edge", "Where(LessOrEqual(x, 0), 1, Add(x, 1))",
     "Where(Less(x, 0), 1, Add(x, 2))"},
    {"pieces of other lengths", "Sub(Relu(x), Relu(Sub(x, 6)))", "Clip(x){min = 0.0, max = 5.0}"},
    {"pieces of other slopes", "Mul(x, Where(Less(x, 0), 0.1, 2))", "LeakyRelu(x){alpha = 0.1}"},
    {"pieces of two values", "Add(Relu(x), Relu(Neg(y)))", "Abs(x)"},
    {"sign of another value", "Mul(Sign(x), y)", "Abs(y)"},
    {"relu of a shifted value", "Relu(Add(x, 1))", "Add(Relu(x), 1)"},
    {"max of shifted values", "Max(Add(x, 1), Add(y, 2))", "Add(Max(x, y), 1)"},
    {"max against min", "Max(Neg(x), Neg(y))", "Neg(Max(x, y))"},
    {"clip of unlike intervals", "Clip(Clip(x){min = 0.0, max = 6.0}){min = -1.0, max = 3.0}",
     "Clip(x){min = 0.0, max = 6.0}"},
    {"min of max against max of min", "Min(Max(x, 2), 1)", "Max(Min(x, 1), 2)"},
    {"clip of a multiple, bounds forgotten", "Clip(Mul(x, 2)){min = 0.0, max = 6.0}",
     "Mul(Clip(x){min = 0.0, max = 6.0}, 2)"},
    {"absolute value of a sum", "Abs(Add(x, y))", "Add(Abs(x), Abs(y))"},
    {"softmax along another axis", "Softmax(x){axis = 1}",
     "Softmax(Sub(x, ReduceMax(x){axes = [2], keepdims = 1})){axis = 1}"},
    {"softmax of a shift along the axis", "Softmax(x){axis = 2}", "Softmax(Add(x, s)){axis = 2}"},
    {"softmax of a multiple", "Softmax(x){axis = 1}", "Softmax(Mul(x, 2)){axis = 1}"},
    {"exponential of a product", "Exp(Mul(x, y))", "Mul(Exp(x), Exp(y))"},
    {"logarithm of factors of unknown sign", "Log(Mul(x, y))", "Add(Log(x), Log(y))"},
    {"exponential of a logarithm", "Exp(Log(x))", "x"},
    {"root of a square", "Sqrt(Mul(x, x))", "x"},
    {"square of a root", "x", "Mul(Sqrt(x), Sqrt(x))"},
    {"odd power of a root", "Pow(x, 3)", "Mul(Abs(x), Mul(x, x))"},
    {"even function", "Cos(Neg(x))", "Neg(Cos(x))"},
    {"odd function", "Exp(Neg(x))", "Neg(Exp(x))"},
    {"reciprocal of a reciprocal", "x", "Reciprocal(Reciprocal(x))"},
    {"quotient of itself", "Mul(x, 0)", "Sub(Div(x, y), Div(x, y))"},
    {"factor along the reduced axis", "ReduceSum(Mul(x, s)){axes = [2], keepdims = 1}",
     "Mul(ReduceSum(x){axes = [2], keepdims = 1}, s)"},
    {"pools that forget a border",
     "MaxPool(MaxPool(z){kernel_shape = [4, 4], strides = [4, 4], pads = [0, 0, 0, 0], dilations = "
     "[1, 1]}){kernel_shape = [2, 2], "
     "strides = [1, 1], pads = [0, 0, 1, 1], dilations = [1, 1]}",
     "MaxPool(z){kernel_shape = [8, 8], strides = [4, 4], pads = [0, 0, 2, 2], dilations = [1, "
     "1]}"},
    {"pools with a gap",
     "MaxPool(MaxPool(z){kernel_shape = [1, 1], strides = [2, 2], pads = [0, 0, 0, 0], dilations = "
     "[1, 1]}){kernel_shape = [2, 2], "
     "strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]}",
     "MaxPool(z){kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, "
     "1]}"},
    {"pool of a negated value",
     "MaxPool(Neg(z)){kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = "
     "[1, 1]}",
     "Neg(MaxPool(z){kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, "
     "1]})"},
    {"where at the border", "Where(Less(x, y), x, y)", "Max(x, y)"},
    {"where of unlike multiples", "Where(b, Mul(x, 3), Mul(y, 2))", "Mul(3, Where(b, x, y))"},
    {"where with a constant behind the border", "Where(Less(x, 0), 1, x)",
     "Where(Less(0, x), x, 1)"},
    {"other order", "Less(x, y)", "Not(Greater(x, y))"},
    {"comparison of a negative multiple", "Less(Mul(x, -2), 0)", "Less(x, 0)"},
    {"cast of a sum that wraps", "Cast(Cast(Add(q, q2)){to = \"f32\"}){to = \"i8\"}", "Add(q, q2)"},
    {"cast of a sum back", "Cast(Cast(Cast(x){to = \"f64\"}){to = \"f32\"}){to = \"i8\"}",
     "Cast(Neg(x)){to = \"i8\"}"},
    {"cast that wraps", "Cast(Cast(q){to = \"u8\"}){to = \"i8\"}", "Neg(q)"},
    {"mask of large numbers", "Softmax(Add(x, Mul(Kept, -1000))){axis = 2}",
     "Div(Mul(Exp(x), Kept), ReduceSum(Mul(Kept, Exp(x))){axes = [2], keepdims = 1})"},
    {"mask along another axis", "Softmax(Add(x, Masked)){axis = 1}",
     "Div(Mul(Exp(x), Kept), ReduceSum(Mul(Kept, Exp(x))){axes = [1], keepdims = 1})"},
    {"integer distributivity under relu", "Relu(Mul(q, Three8))", "Mul(Relu(q), Three8)"},
    {"a literal next to the rounded one", "Relu(Mul(x, 0.11111111938953400))", "Div(Relu(x), 8)"},
    {"gelu with another literal", "Gelu(x)",
     "Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142134189605713)), 1))"},
    {"variance over other axes",
     "Sub(ReduceMean(Mul(x, x)){axes = [2], keepdims = 1}, Pow(ReduceMean(x){axes = [1], keepdims "
     "= 1}, 2))",
     "ReduceMean(Pow(Sub(x, ReduceMean(x){axes = [2], keepdims = 1}), 2)){axes = [2], keepdims = "
     "1}"},
    {"or of another equality", "Or(Less(x, y), Equal(x, h))", "LessOrEqual(x, y)"},
    {"attributes nearer to each other than f32 reports", "LeakyRelu(x){alpha = 0.2500000001}",
     "LeakyRelu(x){alpha = 0.25}"},
    {"attributes nearer to each other than f16 reports",
     "LeakyRelu(Cast(x){to = \"f16\"}){alpha = 0.25}",
     "LeakyRelu(Cast(x){to = \"f16\"}){alpha = 0.25001}"},
    {"expression next to its literal", "Add(x, Mul(0.1, 0.3))", "Add(x, 0.030000003054738045)"},
    {"exponential next to its literal", "Mul(x, Exp(0.5))", "Mul(x, 1.6487213373184204)"},
    {"difference of roundings", "Add(x, Sub(Mul(0.1, 0.3), 0.03))", "x"},
    {"quotient of literals the other way round", "Div(x, Div(0.3, 0.7))", "Div(Mul(x, 0.3), 0.7)"},
    {"local response over other channels", "LRN(z){size = 3, alpha = 0.5, beta = 0.75, bias = 2.0}",
     "LRN(z){size = 2, alpha = 0.5, beta = 0.75, bias = 2.0}"},
    {"layer norm with another epsilon", "LayerNormalization(x, s){axis = 2, epsilon = 0.5}",
     "LayerNormalization(x, s){axis = 2, epsilon = 0.25}"},
    {"layer norm over other axes", "LayerNormalization(x, s){axis = 2, epsilon = 0.5}",
     "LayerNormalization(x, s){axis = 1, epsilon = 0.5}"},
};

}  // namespace mendel::axioms_test

#endif  // MENDEL_VERIFIER_AXIOMS_AXIOMS_CASES_H_
