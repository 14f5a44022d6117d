// Instances of every axiom.
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
    {"elu as a sum of extremes", "Elu(x)", "Add(Max(x, 0), Min(Sub(Exp(x), 1), 0))"},
    {"elu as a sum of extremes", "Elu(x){alpha = 0.5}",
     "Add(Relu(x), Min(Mul(0.5, Sub(Exp(x), 1)), 0))"},
    {"elu as a sum of extremes", "Elu(x){alpha = 0.5}",
     "Add(Mul(0.5, Min(0, Sub(Exp(x), 1))), Max(0, x))"},
    {"elu as a sum of extremes", "Elu(x){alpha = 0.5}",
     "Add(Relu(x), Mul(0.5, Sub(Exp(Min(x, 0)), 1)))"},
    {"elu as a sum of extremes", "Elu(x){alpha = 0.5}",
     "Sub(Relu(x), Mul(0.5, Relu(Sub(1, Exp(x)))))"},
    {"exponential of a limited value", "Exp(Relu(x))", "Max(1, Exp(x))"},
    {"exponential of a limited value", "Exp(Min(0, x))", "Min(Exp(x), 1)"},
    {"elu as a sum of extremes", "Celu(x){alpha = 2.0}",
     "Add(Max(x, 0), Min(Mul(2, Sub(Exp(Div(x, 2)), 1)), 0))"},
    {"where at zero", "Selu(x){alpha = 1.5, gamma = 0.75}",
     "Mul(0.75, Where(Greater(x, 0), x, Sub(Mul(1.5, Exp(x)), 1.5)))"},
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
    {"factor of a linear operator", "MatMul(m, Full3)", "Mul(3, MatMul(m, Full1))"},
    {"factor of a linear operator", "MatMul(x, Expand(-0.25){shape = [4, 3]})",
     "Mul(-0.25, MatMul(x, Transpose(Expand(1){shape = [3, 4]}){perm = [1, 0]}))"},
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
    {"literal of an expression", "Add(x, Exp(Full3))", "Add(x, 20.085536956787109)"},
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
    {"pool of an increasing function",
     "MaxPool(Clip(Round(Mul(z, 8))){min = -5.0, max = 250.0}){kernel_shape = [3, 3], strides = "
     "[2, "
     "2], pads = [1, 1, 1, 1], dilations = [1, 1]}",
     "Clip(Round(Mul(8, MaxPool(z){kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], "
     "dilations = [1, 1]}))){min = -5.0, max = 250.0}"},
    {"pool of an increasing function",
     "MaxPool(Cast(Clip(z){min = -128.0, max = 127.0}){to = \"i8\"}){kernel_shape = [2, 2], "
     "strides "
     "= [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}",
     "Cast(Clip(MaxPool(z){kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations "
     "= [1, 1]}){min = -128.0, max = 127.0}){to = \"i8\"}"},
    {"pool of an increasing function",
     "MaxPool(Cast(Add(Cast(Cast(Clip(z){min = 0.0, max = 255.0}){to = \"u8\"}){to = \"i32\"}, "
     "Three32)){to = \"f32\"}){kernel_shape = [2, 2], strides = [2, 2], pads = "
     "[0, 0, 0, 0], dilations = [1, 1]}",
     "Cast(Add(Three32, Cast(Cast(MaxPool(Clip(z){min = 0.0, max = 255.0})"
     "{kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}){to = "
     "\"u8\"}){to = \"i32\"})){to = \"f32\"}"},
    // Steps.
    {"rounding of a limited value", "Round(Relu(x))", "Relu(Round(x))"},
    {"rounding of a limited value", "Clip(Round(Div(Relu(x), 0.3))){min = 0.0, max = 255.0}",
     "Clip(Round(Div(x, 0.3))){min = 0.0, max = 255.0}"},
    {"rounding of a limited value", "Round(Mul(Clip(x){min = 0.0, max = 6.0}, 42.5))",
     "Clip(Round(Mul(x, 42.5))){min = 0.0, max = 255.0}"},
    {"rounding of a limited value", "Floor(Min(x, 2.5))", "Min(Floor(x), 2)"},
    {"quantized integer", "Round(Add(Cast(q){to = \"f32\"}, 3))", "Add(3, Cast(q){to = \"f32\"})"},
    {"quantized integer",
     "Cast(Sub(Cast(Add(Cast(q){to = \"i32\"}, Three32)){to = \"f32\"}, 3)){to = \"i8\"}", "q"},
    {"quantized integer",
     "Cast(Add(Clip(Round(Div(Mul(0.3, Cast(Sub(Cast(q){to = \"i32\"}, Three32)){to = \"f32\"}), "
     "0.3))){min = -131.0, max = 124.0}, 3)){to = \"i8\"}",
     "q"},
    {"quantized integer", "Floor(Add(Round(Mul(x, 8)), 2))", "Add(2, Round(Mul(8, x)))"},
    {"rounding of a limited value", "Ceil(Clip(x){min = -1.5, max = 6.0})",
     "Clip(Ceil(x)){min = -1.0, max = 6.0}"},
    {"limit of a limited value", "Clip(Cast(q){to = \"f32\"}){min = -128.0, max = 127.0}",
     "Cast(q){to = \"f32\"}"},
    {"limit of a limited value", "Relu(Add(Cast(q){to = \"f32\"}, 128))",
     "Add(Cast(q){to = \"f32\"}, 128)"},
    {"position of an extreme", "ArgMax(Softmax(x){axis = 1}){axis = 1}", "ArgMax(x){axis = 1}"},
    {"position of an extreme", "ArgMax(LogSoftmax(x){axis = 2}){axis = 2, keepdims = 0}",
     "ArgMax(x){axis = 2, keepdims = 0}"},
    {"position of an extreme", "ArgMin(Tanh(x)){axis = 1}", "ArgMax(Neg(x)){axis = 1}"},
    {"position of an extreme", "ArgMax(Sigmoid(Add(x, h))){axis = 1}",
     "ArgMax(Mul(x, 3)){axis = 1}"},
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
    {"logarithm of an exponential and one", "Softplus(x)",
     "Add(Relu(x), Log(Add(1, Exp(Neg(Abs(x))))))"},
    {"logarithm of an exponential and one", "Softplus(Neg(x))",
     "Add(Max(0, Neg(x)), Log(Add(Exp(Neg(Abs(x))), 1)))"},
    {"logarithm of an exponential and one", "Softplus(Neg(x))", "Sub(Softplus(x), x)"},
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
    {"comparison with an infinity", "Where(Greater(x, -inf), x, y)", "x"},
    {"comparison with an infinity", "Where(Less(x, inf), x, y)", "x"},
    {"comparison with an infinity", "Where(Less(x, -inf), x, y)", "y"},
    {"comparison with an infinity", "Where(Equal(Exp(x), inf), x, y)", "y"},
    {"index of another dtype", "Gather(x, Cast(Cast(b){to = \"i32\"}){to = \"i64\"}){axis = 0}",
     "Gather(x, Cast(b){to = \"i32\"}){axis = 0}"},
    {"moved negation", "Transpose(Not(b)){perm = [1, 0, 2]}",
     "Not(Transpose(b){perm = [1, 0, 2]})"},
    {"moved negation", "Where(Reshape(Not(b)){shape = [6, 4]}, Reshape(x){shape = [6, 4]}, 0)",
     "Where(Reshape(b){shape = [6, 4]}, 0, Reshape(x){shape = [6, 4]})"},
    {"one order relation", "GreaterOrEqual(x, y)", "Not(Less(x, y))"},
    {"one order relation", "Greater(q, q2)", "Less(q2, q)"},
    {"one order relation", "Or(Less(x, y), Equal(y, x))", "LessOrEqual(x, y)"},
    {"nested choice", "Softmax(Where(b, Where(Less(x, y), x, -inf), -inf)){axis = 2}",
     "Softmax(Where(And(Less(x, y), b), x, -inf)){axis = 2}"},
    {"nested choice", "Where(b, -inf, Where(Less(x, y), -inf, x))",
     "Where(Or(Less(x, y), b), -inf, x)"},
    {"sum with a chosen infinity", "Softmax(Add(x, Where(b, 0, -inf))){axis = 2}",
     "Softmax(Where(b, x, -inf)){axis = 2}"},
    {"sum with a chosen infinity", "Add(Where(Less(x, y), 0, -inf), Add(Where(b, 0, -inf), x))",
     "Where(Less(x, y), Where(b, x, -inf), -inf)"},
    {"nested choice", "Softmax(Add(Add(x, Masked), Where(b, 0, -inf))){axis = 2}",
     "Softmax(Where(b, Add(Masked, x), -inf)){axis = 2}"},
    {"nested choice", "Add(Where(b, x, -inf), Masked)", "Add(Where(b, 0, -inf), Add(x, Masked))"},
    {"test of a finite value", "Where(IsNaN(Softmax(x){axis = 2}), 0, Softmax(x){axis = 2})",
     "Softmax(x){axis = 2}"},
    {"test of a finite value",
     "Where(IsNaN(Softmax(Add(x, Masked)){axis = 2}), 0, Softmax(Add(x, Masked)){axis = 2})",
     "Softmax(Add(Masked, x)){axis = 2}"},
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

}  // namespace mendel::axioms_test

#endif  // MENDEL_VERIFIER_AXIOMS_AXIOMS_CASES_H_
