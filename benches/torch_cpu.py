"""The PyTorch side of the CPU benchmark: eager mode, float32, one process.

Protocol (JSON, one object a line): on start the script prints {"torch": version, "threads": n}, or
leaves with exit code 3 and one sentence on stderr where torch cannot be imported. It then answers
every line of standard input with one line:

    {"case": NAME, ...sizes..., "repeat": R} -> {"seconds": [R floats], "check": float or null}
    {"memory": true}                         -> {"resident_bytes": now, "peak_bytes": highest so far}
    {"quit": true}, or the end of the input  -> the script ends
    anything else                            -> {"error": "..."}

A case is prepared and run once, untimed, at its first request and kept for later ones. Tensors are
filled with scale * sin(1 + 0.37 i + seed) over the flat index i, in float64, then rounded. The check
is sum(output[i] * cos(0.11 i)) / sqrt(count) of the output (or of the gradient by the first input),
and for "step" the loss of the first step, before any update. The cases and their sizes are in CASES;
"scan" is written in tensor operations and differentiated by autograd, "scan_by_hand" (which "step" uses
too) has a hand-written backward that keeps its matrices in cache.

For people: `--case NAME` runs one case at its default sizes, `--self-test` compares the chunked scan
and the block of "step", values and gradients, with plain loops in float64.
"""

import argparse
import json
import math
import os
import resource
import sys
import time

try:
    import torch
    import torch.nn.functional as functional
except Exception as problem:  # a broken installation fails in many ways
    print(f"torch cannot be imported: {problem}.", file=sys.stderr)
    sys.exit(3)

CHUNK = 64


def fill(seed, shape, scale=1.0, offset=0.0, dtype=torch.float32):
    index = torch.arange(math.prod(shape), dtype=torch.float64)
    return (offset + scale * torch.sin(1.0 + 0.37 * index + seed)).to(dtype).reshape(shape)


def checksum(output):
    flat = output.detach().reshape(-1).double()
    return float(flat @ torch.cos(0.11 * torch.arange(len(flat), dtype=torch.float64))) / math.sqrt(len(flat))


class ChunkedScan(torch.autograd.Function):
    """h_t = exp(delta_t A) h_{t-1} + delta_t x_t (x) B_t, y_t = h_t C_t, in chunks of matrix products.

    Shapes: x [batch, groups, tokens, heads of a group, channels], delta without the channels,
    A [groups, heads of a group], B and C [batch, groups, tokens, states]. With s the running sum of
    delta A within a chunk, y_i = exp(s_i) C_i H + sum_{j <= i} (C_i . B_j) exp(s_i - s_j) delta_j x_j,
    where H is the state that enters the chunk. The [chunk, chunk] matrices are made for one
    (batch, group) item at a time, which keeps them in cache, and are made again going backward.
    """

    @staticmethod
    def padded(tensor, chunks):
        """The tokens, axis 2, filled up with zeros and cut: [batch * groups, chunks, CHUNK, ...]."""
        tokens = tensor.shape[2]
        buffer = tensor.new_empty(*tensor.shape[:2], chunks * CHUNK, *tensor.shape[3:])
        buffer[:, :, :tokens] = tensor
        buffer[:, :, tokens:] = 0
        return buffer.view(-1, chunks, CHUNK, *tensor.shape[3:])

    @staticmethod
    def decay_and_scores(running, B, C, decay):
        """Of one item: puts exp(s_i - s_j) [heads, chunks, i, j] (wrong but finite above the diagonal)
        into decay and gives the lower-triangular C_i . B_j [chunks, i, j]."""
        running = running.permute(2, 0, 1).contiguous()
        torch.sub(running.unsqueeze(-1), running.unsqueeze(-2), out=decay).clamp_(max=0).exp_()
        return torch.bmm(C, B.transpose(1, 2)).tril_()

    @staticmethod
    def forward(context, x, delta, A, B, C):
        context.save_for_backward(x, delta, A)
        batch, groups, tokens, heads, channels = x.shape
        states, items, chunks = B.shape[-1], batch * groups, -(-tokens // CHUNK)
        wide = (-1, CHUNK, heads * channels)
        weighted, B, C = (ChunkedScan.padded(tensor, chunks) for tensor in (x * delta.unsqueeze(-1), B, C))
        running = ChunkedScan.padded(delta * A.unsqueeze(1), chunks).cumsum(2)  # [items, chunks, CHUNK, heads]
        grown, remaining = running.exp().unsqueeze(-1), (running[:, :, -1:] - running).exp_().unsqueeze(-1)
        entering = x.new_empty(items, chunks, states, heads, channels)
        kept, entering[:, 0] = torch.empty_like(weighted[0, :-1]), 0
        for item in range(items):
            torch.mul(weighted[item, :-1], remaining[item, :-1], out=kept)
            torch.bmm(B[item, :-1].transpose(1, 2), kept.view(wide), out=entering[item, 1:].view(-1, states, wide[2]))
        for chunk in range(1, chunks - 1):
            entering[:, chunk + 1].addcmul_(entering[:, chunk], grown[:, chunk, -1:])
        y, within = torch.empty_like(weighted), x.new_empty(heads, chunks, CHUNK, channels)
        decay = x.new_empty(heads, chunks, CHUNK, CHUNK)
        for item in range(items):
            torch.bmm(C[item], entering[item].view(chunks, states, -1), out=y[item].view(wide))
            scores = ChunkedScan.decay_and_scores(running[item], B[item], C[item], decay)
            decay.mul_(scores)
            for head in range(heads):
                torch.bmm(decay[head], weighted[item, :, :, head], out=within[head])
            y[item].mul_(grown[item]).add_(within.permute(1, 2, 0, 3))
        context.made = weighted, B, C, running, grown, remaining, entering, y
        return y.view(batch, groups, -1, heads, channels)[:, :, :tokens]

    @staticmethod
    def backward(context, y_gradient):
        x, delta, A = context.saved_tensors
        weighted, B, C, running, grown, remaining, entering, y = context.made
        (items, chunks, _, states), (heads, channels), tokens = B.shape, x.shape[3:], x.shape[2]
        wide, tall = (chunks, CHUNK, heads * channels), (chunks, states, heads * channels)
        y_gradient = ChunkedScan.padded(y_gradient, chunks)
        B_gradient, C_gradient, scratch = torch.empty_like(B), torch.empty_like(C), torch.empty_like(y[0])
        state_gradient = x.new_empty(items, chunks + 1, states, heads, channels)
        state_gradient[:, chunks] = 0
        for item in range(items):
            scaled = torch.mul(y_gradient[item], grown[item], out=scratch).view(wide)
            torch.bmm(C[item].transpose(1, 2), scaled, out=state_gradient[item, :-1].view(tall))
            torch.bmm(scaled, entering[item].view(tall).transpose(1, 2), out=C_gradient[item])
        for chunk in range(chunks - 2, -1, -1):
            state_gradient[:, chunk].addcmul_(state_gradient[:, chunk + 1], grown[:, chunk, -1:])

        # s_i scales all of y_i, 1 / exp(s_j) all that token j gives, the last s the state that leaves.
        weighted_gradient, running_gradient = torch.empty_like(weighted), torch.empty_like(running)
        decay, decay_gradient = x.new_empty(2, heads, chunks, CHUNK, CHUNK)
        within = x.new_empty(heads, chunks, CHUNK, channels)
        for item in range(items):
            scores = ChunkedScan.decay_and_scores(running[item], B[item], C[item], decay)
            for head in range(heads):
                given = weighted[item, :, :, head].transpose(1, 2)
                torch.bmm(y_gradient[item, :, :, head], given, out=decay_gradient[head])
            scores_gradient = decay_gradient.mul_(decay).sum(0).tril_()
            decay.mul_(scores)
            for head in range(heads):
                torch.bmm(decay[head].transpose(1, 2), y_gradient[item, :, :, head], out=within[head])
            leaving = state_gradient[item, 1:].view(tall)
            kept = torch.mul(weighted[item], remaining[item], out=scratch).view(wide)
            C_gradient[item].baddbmm_(scores_gradient, B[item])
            torch.bmm(scores_gradient.transpose(1, 2), C[item], out=B_gradient[item])
            B_gradient[item].baddbmm_(kept, leaving.transpose(1, 2))
            torch.bmm(B[item], leaving, out=weighted_gradient[item].view(wide))
            weighted_gradient[item].mul_(remaining[item]).add_(within.permute(1, 2, 0, 3))
            torch.sum(torch.mul(y_gradient[item], y[item], out=scratch), -1, out=running_gradient[item])
            running_gradient[item, :-1, -1] += (entering[item, 1:] * state_gradient[item, 1:-1]).sum((1, 3))

        def live(tensor):
            return tensor.view(*x.shape[:2], chunks * CHUNK, *tensor.shape[3:])[:, :, :tokens]

        weighted_gradient = live(weighted_gradient)
        delta_gradient = (weighted_gradient * x).sum(-1)
        live(running_gradient).addcmul_(delta_gradient, delta, value=-1)
        rates_gradient = live(running_gradient.flip(2).cumsum(2).flip(2))
        delta_gradient.addcmul_(rates_gradient, A.unsqueeze(1))
        A_gradient = (rates_gradient * delta).sum((0, 2))
        return weighted_gradient * delta.unsqueeze(-1), delta_gradient, A_gradient, live(B_gradient), live(C_gradient)


def scan(x, delta, A, B, C):
    """The scan of x [batch, tokens, heads, channels], delta [batch, tokens, heads], A [heads] with
    B and C [batch, tokens, groups, states]; head h uses group h // (heads / groups)."""
    groups = B.shape[2]
    x, delta = (tensor.unflatten(2, (groups, -1)).transpose(1, 2) for tensor in (x, delta))
    y = ChunkedScan.apply(x, delta, A.view(groups, -1), B.transpose(1, 2), C.transpose(1, 2))
    return y.transpose(1, 2).flatten(2, 3)


def scan_in_tensor_operations(x, delta, A, B, C):
    """The same scan as chunked tensor operations that autograd differentiates: what one writes with the formulas of
    Mamba-2 in hand. Shapes as in scan."""
    (batch, tokens, heads, _), groups, states = x.shape, B.shape[2], B.shape[3]
    chunks = -(-tokens // CHUNK)

    def cut(tensor):  # [batch, tokens, ...] -> [batch, chunks, CHUNK, ...]
        padding = [0, 0] * (tensor.dim() - 2) + [0, chunks * CHUNK - tokens]
        return functional.pad(tensor, padding).unflatten(1, (chunks, CHUNK))

    weighted = cut(x * delta.unsqueeze(-1)).permute(0, 1, 3, 2, 4)  # [batch, chunks, heads, CHUNK, channels]
    running = cut(delta * A).cumsum(2).transpose(2, 3)  # [batch, chunks, heads, CHUNK]
    B, C = (cut(tensor).transpose(2, 3) for tensor in (B, C))  # [batch, chunks, groups, CHUNK, states]
    differences = running.unsqueeze(-1) - running.unsqueeze(-2)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril()
    decay = torch.exp(differences.masked_fill(~lower, -torch.inf)).unflatten(2, (groups, -1))
    scores = (C @ B.transpose(-1, -2)).unsqueeze(3) * decay  # [batch, chunks, groups, heads of a group, i, j]
    within = scores.flatten(2, 3) @ weighted
    remaining = torch.exp(running[..., -1:] - running).unsqueeze(-1)
    by_group = (weighted * remaining).unflatten(2, (groups, -1))
    given = B.transpose(-1, -2).unsqueeze(3) @ by_group  # [batch, chunks, groups, heads of a group, states, channels]
    leaving, state, entering = torch.exp(running[..., -1])[..., None, None], 0.0, []
    given = given.flatten(2, 3)
    for chunk in range(chunks):
        entering.append(torch.zeros_like(given[:, 0]) if chunk == 0 else state)
        state = given[:, chunk] if chunk == 0 else leaving[:, chunk] * state + given[:, chunk]
    entering = torch.stack(entering, 1).unflatten(2, (groups, -1))
    before = (C.unsqueeze(3) @ entering).flatten(2, 3) * torch.exp(running).unsqueeze(-1)
    return (within + before).permute(0, 1, 3, 2, 4).flatten(1, 2)[:, :tokens]


class Reorder(torch.autograd.Function):
    """Rows [inputs, channels] read in an order; `places` [inputs, uses] says where each row went."""

    @staticmethod
    def forward(context, rows, order, places):
        context.places = places
        return rows.index_select(0, order)

    @staticmethod
    def backward(context, gradient):
        return functional.embedding_bag(context.places, gradient.contiguous(), mode="sum"), None, None


class Collect(torch.autograd.Function):
    """The adjoint of Reorder: every row back at its place, summed over its uses."""

    @staticmethod
    def forward(context, rows, order, places):
        context.order = order
        return functional.embedding_bag(places, rows, mode="sum")

    @staticmethod
    def backward(context, gradient):
        return gradient.index_select(0, context.order), None, None


def directions(batch, rows, columns):
    """Orders and places for Reorder, from [batch, cells] and from [batch, cells, direction] rows,
    both into [batch, direction, cells]."""
    cells, step = rows * columns, torch.arange(rows * columns)
    orders = torch.stack([step, (step % rows) * columns + step // rows])
    orders = torch.cat([orders, orders.flip(1)])
    direction, first = torch.arange(4).view(4, 1), cells * torch.arange(batch).view(-1, 1, 1)
    places = (torch.argsort(orders, dim=1) + cells * direction).t() + 4 * first
    orders = orders + first
    return orders.view(-1), places.reshape(-1, 4), (4 * orders + direction).view(-1), places.reshape(-1, 1)


def block_parameters(number, width, inner, states, heads, mlp, dtype=torch.float32):
    """The parameters of a block by name; the seed is 100 * block + position, both counted from one."""
    hidden, near_one, small = mlp * width, (0.1, 1.0), (0.1, 0.0)
    plan = [
        ("norm1_weight", (width,), near_one), ("norm1_bias", (width,), small),
        ("in_proj", (2 * inner, width), (width**-0.5,)),
        ("conv_weight", (inner, 1, 3, 3), (1 / 3,)), ("conv_bias", (inner,), small),
        ("x_proj", (4, heads + 2 * states, inner), (inner**-0.5,)),
        ("dt_bias", (4, heads), small), ("A_log", (4, heads), small), ("D", (4, heads, inner // heads), near_one),
        ("out_norm_weight", (inner,), near_one), ("out_norm_bias", (inner,), small),
        ("out_proj", (width, inner), (inner**-0.5,)),
        ("norm2_weight", (width,), near_one), ("norm2_bias", (width,), small),
        ("fc1_weight", (hidden, width), (width**-0.5,)), ("fc1_bias", (hidden,), small),
        ("fc2_weight", (width, hidden), (hidden**-0.5,)), ("fc2_bias", (width,), small),
    ]
    return {
        name: fill(100 * number + position, shape, *values, dtype=dtype).requires_grad_()
        for position, (name, shape, values) in enumerate(plan, 1)
    }


def normalise(t, p, name):
    return functional.layer_norm(t, t.shape[-1:], p[name + "_weight"], p[name + "_bias"])


def block(t, p, rows, columns, orders, places, projected_orders, projected_places):
    """One grid block on tokens t [batch, cells, width] with the parameters p."""
    batch, cells, _ = t.shape
    heads, inner = p["A_log"].shape[1], p["conv_bias"].shape[0]
    states = (p["x_proj"].shape[1] - heads) // 2
    x, z = functional.linear(normalise(t, p, "norm1"), p["in_proj"]).chunk(2, dim=-1)
    image = x.unflatten(1, (rows, columns)).permute(0, 3, 1, 2)
    image = functional.conv2d(image, p["conv_weight"], p["conv_bias"], padding=1, groups=inner)
    x = functional.gelu(image).permute(0, 2, 3, 1).reshape(batch * cells, inner)
    projected = functional.linear(x, p["x_proj"].flatten(0, 1)).view(-1, heads + 2 * states)
    projected = Reorder.apply(projected, projected_orders, projected_places).view(batch, 4, cells, -1)
    delta, B, C = projected.split([heads, states, states], dim=-1)
    delta = functional.softplus(delta + p["dt_bias"].unsqueeze(1))
    sequences = Reorder.apply(x, orders, places).view(batch, 4, cells, heads, -1)
    y = ChunkedScan.apply(sequences, delta, -p["A_log"].exp(), B, C)
    y = Collect.apply(y.reshape(-1, inner), orders, places)
    y = torch.addcmul(y, x, p["D"].sum(0).view(-1))  # D x of every direction, already summed
    y = normalise(y, p, "out_norm").view(batch, cells, inner) * functional.gelu(z)
    t = t + functional.linear(y, p["out_proj"])
    hidden = functional.gelu(functional.linear(normalise(t, p, "norm2"), p["fc1_weight"], p["fc1_bias"]))
    return t + functional.linear(hidden, p["fc2_weight"], p["fc2_bias"])


def relative_loss(output, target):
    return ((output - target).flatten(1).norm(dim=1) / target.flatten(1).norm(dim=1)).sum()


# Every case takes its sizes and gives a function that runs it once and returns the tensor to check.


def with_gradients(function, inputs, cotangent):
    inputs = [tensor.requires_grad_() for tensor in inputs]
    return lambda: torch.autograd.grad(function(*inputs), inputs, cotangent)[0]


def matmul(m, n, k):
    a, b = fill(1, (m, k)), fill(2, (k, n))
    return lambda: a @ b


def maps(rows, columns):
    x, y, bias = fill(1, (rows, columns)), fill(2, (rows, columns)), fill(3, (columns,))

    def run():
        result = torch.ops.aten.gelu_(x + bias).mul_(y)
        return result.add_(torch.tanh(x), alpha=0.5).sub_(torch.sigmoid(y))

    return run


def softmax(rows, columns):
    return with_gradients(lambda x: torch.softmax(x, -1), [fill(1, (rows, columns), 3.0)], fill(2, (rows, columns)))


def layer_norm(rows, columns):
    inputs = [fill(1, (rows, columns)), fill(2, (columns,)), fill(3, (columns,))]
    return with_gradients(lambda x, w, b: functional.layer_norm(x, (columns,), w, b), inputs, fill(4, (rows, columns)))


def dense(batch, rows, columns, in_channels, out_channels, groups=1, scale=0.1):
    weight = fill(2, (out_channels, in_channels // groups, 3, 3), scale).to(memory_format=torch.channels_last)
    x = fill(1, (batch, rows, columns, in_channels)).permute(0, 3, 1, 2)  # channels last in memory
    cotangent = fill(3, (batch, rows, columns, out_channels)).permute(0, 3, 1, 2)
    run = with_gradients(lambda x, w: functional.conv2d(x, w, padding=1, groups=groups), [x, weight], cotangent)
    return lambda: run().permute(0, 2, 3, 1)


def depthwise(batch, rows, columns, channels):
    return dense(batch, rows, columns, channels, channels, groups=channels, scale=1.0)


def scan_inputs(batch, tokens, heads, channels, groups, states, dtype=torch.float32):
    x, cotangent = (fill(seed, (batch, tokens, heads, channels), dtype=dtype) for seed in (1, 6))
    delta = fill(2, (batch, tokens, heads), 0.04, 0.05, dtype)
    A = (-1.0 - 0.5 * fill(3, (heads,), dtype=torch.float64).abs()).to(dtype)
    B, C = (fill(seed, (batch, tokens, groups, states), 0.5, dtype=dtype) for seed in (4, 5))
    return [x, delta, A, B, C], cotangent


def step(batch, rows, columns, width, inner, states, heads, layers, mlp):
    tokens, target = (fill(seed, (batch, rows * columns, width)) for seed in (1, 2))
    blocks = [block_parameters(number + 1, width, inner, states, heads, mlp) for number in range(layers)]
    parameters = [parameter for p in blocks for parameter in p.values()]
    optimiser = torch.optim.AdamW(parameters, lr=5e-4, betas=(0.95, 0.999), eps=1e-8, weight_decay=1e-5, fused=True)
    paths = directions(batch, rows, columns)

    def run():
        optimiser.zero_grad(set_to_none=True)
        t = tokens
        for p in blocks:
            t = block(t, p, rows, columns, *paths)
        loss = relative_loss(t, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.1, foreach=True)
        optimiser.step()
        return loss

    return run


SCAN = dict(batch=4, tokens=1936, heads=16, channels=32, groups=4, states=64)
CASES = {
    "matmul": (matmul, dict(m=512, n=512, k=512)),
    "maps": (maps, dict(rows=7744, columns=256)),
    "softmax": (softmax, dict(rows=30976, columns=64)),
    "layer_norm": (layer_norm, dict(rows=7744, columns=128)),
    "depthwise": (depthwise, dict(batch=4, rows=44, columns=44, channels=128)),
    "dense": (dense, dict(batch=4, rows=64, columns=64, in_channels=128, out_channels=128)),
    "scan": (lambda **sizes: with_gradients(scan_in_tensor_operations, *scan_inputs(**sizes)), SCAN),
    "scan_by_hand": (lambda **sizes: with_gradients(scan, *scan_inputs(**sizes)), SCAN),
    "step": (step, dict(batch=4, rows=44, columns=44, width=64, inner=128, states=64, heads=4, layers=2, mlp=4)),
}
prepared = {}


def measure(name, sizes, repeat):
    if name not in CASES:
        raise ValueError(f"there is no case {name!r}; the cases are {', '.join(CASES)}")
    make, expected = CASES[name]
    if set(sizes) != set(expected) or any(type(value) is not int or value < 1 for value in (*sizes.values(), repeat)):
        raise ValueError(f"{name} takes the positive whole numbers {', '.join(expected)} and repeat")
    key = (name, *sorted(sizes.items()))
    if key not in prepared:
        run = make(**sizes)
        check = run().item() if name == "step" else checksum(run())
        prepared[key] = run, check if math.isfinite(check) else None
    run, check = prepared[key]
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "check": check}


def memory():
    with open("/proc/self/statm") as pages:
        resident = int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {"resident_bytes": resident, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def serve():
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request.pop("quit", False):
                return
            if request.pop("memory", False):
                reply = memory()
            else:
                reply = measure(request.pop("case", None), repeat=request.pop("repeat", 1), sizes=request)
        except Exception as problem:
            reply = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(reply), flush=True)


def naive_scan(x, delta, A, B, C):
    state, outputs, each = 0.0, [], x.shape[2] // B.shape[2]
    for t in range(x.shape[1]):
        B_now, C_now = (tensor[:, t].repeat_interleave(each, 1).unsqueeze(2) for tensor in (B, C))
        state = torch.exp(delta[:, t] * A)[:, :, None, None] * state
        state = state + delta[:, t, :, None, None] * x[:, t, :, :, None] * B_now
        outputs.append((state * C_now).sum(-1))
    return torch.stack(outputs, 1)


def naive_block(t, p, rows, columns):
    """The block as it is written down: one direction after the other, cell by cell."""
    (batch, cells, _), heads, inner = t.shape, p["A_log"].shape[1], p["conv_bias"].shape[0]
    x, z = (normalise(t, p, "norm1") @ p["in_proj"].t()).chunk(2, -1)
    image = functional.pad(x.reshape(batch, rows, columns, inner), (0, 0, 1, 1, 1, 1))
    nine = [(i, j, image[:, i:i + rows, j:j + columns]) for i in range(3) for j in range(3)]
    x = functional.gelu(sum(part * p["conv_weight"][:, 0, i, j] for i, j, part in nine) + p["conv_bias"]).flatten(1, 2)
    across, down = list(range(cells)), [(l % rows) * columns + l // rows for l in range(cells)]
    total = 0.0
    for k, order in enumerate([across, down, across[::-1], down[::-1]]):
        projected = x[:, order] @ p["x_proj"][k].t()
        delta, (B, C) = projected[..., :heads], projected[..., None, heads:].chunk(2, -1)
        delta, by_head = functional.softplus(delta + p["dt_bias"][k]), x[:, order].unflatten(2, (heads, -1))
        y = naive_scan(by_head, delta, -torch.exp(p["A_log"][k]), B, C) + p["D"][k] * by_head
        total = total + torch.stack([y[:, order.index(cell)] for cell in range(cells)], 1).flatten(2)
    t = t + (normalise(total, p, "out_norm") * functional.gelu(z)) @ p["out_proj"].t()
    hidden = functional.gelu(normalise(t, p, "norm2") @ p["fc1_weight"].t() + p["fc1_bias"])
    return t + hidden @ p["fc2_weight"].t() + p["fc2_bias"]


def self_test():
    def compare(what, names, ours, plain):
        errors = [((a - b).abs().max() / b.abs().max().clamp(min=1e-6)).item() for a, b in zip(ours, plain)]
        print(json.dumps({"test": what, "largest": max(errors), "relative_errors": dict(zip(names, errors))}))
        return max(errors) < 1e-9

    passed = True
    for tokens in (1, 40, 64, 65, 128, 200):
        inputs, cotangent = scan_inputs(2, tokens, 6, 5, 2, 7, torch.float64)
        inputs = [tensor.requires_grad_() for tensor in inputs]
        outputs = [function(*inputs) for function in (scan, scan_in_tensor_operations, naive_scan)]
        by_hand, by_autograd, plain = ([y, *torch.autograd.grad(y, inputs, cotangent)] for y in outputs)
        names = ["y", "x", "delta", "A", "B", "C"]
        passed &= compare(f"scan of {tokens} tokens", names, by_hand, plain)
        passed &= compare(f"scan in tensor operations of {tokens} tokens", names, by_autograd, plain)
    tokens, target = (fill(seed, (2, 11 * 7, 8), dtype=torch.float64).requires_grad_() for seed in (1, 2))
    p = block_parameters(1, 8, 12, 5, 3, 2, torch.float64)
    outputs = [block(tokens, p, 11, 7, *directions(2, 11, 7)), naive_block(tokens, p, 11, 7)]
    pair = ([y, *torch.autograd.grad(relative_loss(y, target), [tokens, *p.values()])] for y in outputs)
    return 0 if compare("block", ["y", "tokens", *p], *pair) and passed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", choices=list(CASES), help="run one case at its default sizes")
    parser.add_argument("--self-test", action="store_true", help="compare with plain loops in float64")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.self_test:
        return self_test()
    if options.case:
        before, sizes = memory()["resident_bytes"], CASES[options.case][1]
        result = {"case": options.case, **sizes, **measure(options.case, sizes, 5)}
        print(json.dumps({**result, "resident_bytes_before": before, "peak_bytes": memory()["peak_bytes"]}))
        return 0
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
