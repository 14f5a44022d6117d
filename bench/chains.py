"""Models that are long rather than large: chains, a ladder, a grid, a star and recurrences. bench/budgets makes them."""
import numpy

from onnx_bytes import model, node

WIDTH = 32  # of the products
UNITS = 16  # of the recurrences


def random(*shape):
    return numpy.random.default_rng(7).standard_normal(shape).astype(numpy.float32)


def rotation(width):
    """An orthogonal matrix keeps the values of a long chain in range."""
    return numpy.linalg.qr(random(width, width))[0].astype(numpy.float32)


def chain(name, length, kind, shape, constants):
    """`length` nodes of one kind in a row, which share their second input."""
    second = list(constants)
    nodes = [node(kind, f"n{k}", [f"v{k}", *second], [f"v{k + 1}"], {}) for k in range(length)]
    return model(name, nodes, constants, {"v0": shape}, [f"v{length}"])


def matmul_chain(length):
    return chain(f"matmul-{length}", length, "MatMul", [4, WIDTH], {"w": rotation(WIDTH)})


def relu_chain(length):
    return chain(f"relu-{length}", length, "Relu", [8], {})


def add_chain(length):
    return chain(f"add-{length}", length, "Add", [8], {"w": random(8)})


def ladder(length):
    """y_k = y_(k-1) w + tanh(y_(k-2))."""
    nodes = []
    for k in range(2, length + 2):
        nodes += [node("MatMul", f"m{k}", [f"v{k - 1}", "w"], [f"m{k}"], {}), node("Tanh", f"t{k}", [f"v{k - 2}"], [f"t{k}"], {}),
                  node("Add", f"a{k}", [f"m{k}", f"t{k}"], [f"v{k}"], {})]
    shape = [4, WIDTH]
    return model(f"ladder-{length}", nodes, {"w": 0.5 * rotation(WIDTH)}, {"v0": shape, "v1": shape}, [f"v{length + 1}"])


def grid(side):
    """Each sum reads the one above and the one to the left."""
    name = lambda row, column: "x" if row < 0 or column < 0 else f"v{row}_{column}"
    nodes = [node("Add", f"n{i}_{j}", [name(i - 1, j), name(i, j - 1)], [name(i, j)], {}) for i in range(side) for j in range(side)]
    return model(f"grid-{side}", nodes, {}, {"x": [8]}, [name(side - 1, side - 1)])


def slices(count):
    """A concatenation of overlapping slices."""
    constants = {"axes": numpy.array([1], numpy.int64)}
    for k in range(count + 4):
        constants[f"at{k}"] = numpy.array([k], numpy.int64)
    nodes = [node("Slice", f"s{k}", ["x", f"at{k}", f"at{k + 4}", "axes"], [f"s{k}"], {}) for k in range(count)]
    nodes.append(node("Concat", "all", [f"s{k}" for k in range(count)], ["y"], {"axis": 1}))
    return model(f"slices-{count}", nodes, constants, {"x": [1, count + 4]}, ["y"])


def star(rays):
    """One input that many nodes read."""
    constants = {f"c{k}": row for k, row in enumerate(random(rays, 8))}
    nodes = [node("Mul", f"n{k}", ["x", f"c{k}"], [f"r{k}"], {}) for k in range(rays)]
    nodes.append(node("Sum", "all", [f"r{k}" for k in range(rays)], ["y"], {}))
    return model(f"star-{rays}", nodes, constants, {"x": [8]}, ["y"])


def gru(frames):
    constants = {"W": 0.2 * random(1, 3 * UNITS, UNITS), "R": 0.2 * random(1, 3 * UNITS, UNITS)}
    nodes = [node("GRU", "gru", ["x", "W", "R"], ["y"], {"hidden_size": UNITS})]
    return model(f"gru-{frames}", nodes, constants, {"x": [frames, 1, UNITS]}, ["y"])


def unrolled_gru(frames):
    """The same recurrence with the nodes of every frame written out."""
    constants = {"axis": numpy.array([0], numpy.int64), "one": numpy.ones(1, numpy.float32)}
    for gate in "zrh":
        constants |= {f"w{gate}": 0.2 * random(UNITS, UNITS), f"u{gate}": 0.2 * random(UNITS, UNITS)}
    for k in range(frames + 1):
        constants[f"at{k}"] = numpy.array([k], numpy.int64)
    nodes = []

    def put(kind, inputs, output):
        nodes.append(node(kind, output, inputs, [output], {}))
        return output

    state = "h"
    for k in range(frames):
        x = put("Slice", ["x", f"at{k}", f"at{k + 1}", "axis"], f"x{k}")
        gates = {gate: put("Sigmoid", [put("Add", [put("MatMul", [x, f"w{gate}"], f"xw{gate}{k}"), put("MatMul", [state, f"u{gate}"], f"hu{gate}{k}")],
                                           f"sum{gate}{k}")], f"{gate}{k}") for gate in "zr"}
        reset = put("MatMul", [put("Mul", [gates["r"], state], f"rh{k}"), "uh"], f"rhu{k}")
        new = put("Tanh", [put("Add", [put("MatMul", [x, "wh"], f"xwh{k}"), reset], f"sumh{k}")], f"new{k}")
        kept = put("Mul", [gates["z"], state], f"zh{k}")
        state = put("Add", [put("Mul", [put("Sub", ["one", gates["z"]], f"nz{k}"), new], f"nzn{k}"), kept], f"h{k}")
    return model(f"unrolled-{frames}", nodes, constants, {"x": [frames, UNITS], "h": [1, UNITS]}, [state])


ALL = {
    "1,500 MatMul": lambda: matmul_chain(1500),
    "3,000 MatMul": lambda: matmul_chain(3000),
    "ladder of 800": lambda: ladder(800),
    "GRU of 500 frames": lambda: gru(500),
    "GRU of 2,000 frames": lambda: gru(2000),
    "500 frames unrolled": lambda: unrolled_gru(500),
    "grid of 60 x 60 Add": lambda: grid(60),
    "Concat of 5,000 slices": lambda: slices(5000),
    "star of 20,000": lambda: star(20000),
    "50,000 Add": lambda: add_chain(50000),
    "100,000 Relu": lambda: relu_chain(100000),
}
