//! Products, convolutions, memberships, scans and Cholesky factors as C99.

use super::emit::{COUNTERS, Function, line, open};
use super::kernel::{Kernel, Recurrence, Slices, Window};
use super::view::View;

/// Inner elements of a product that are added before they join the rest: sums of sums keep more digits.
const BLOCK: usize = 256;
/// Columns of a product whose sums lie on the stack.
const COLUMNS: usize = 1024;

/// The function of a loop that is no elementwise function.
pub(super) fn function(kernel: &Kernel) -> Function {
    match kernel {
        Kernel::Product { out, left, right } => product(out, left, right),
        Kernel::Convolution { out, input, weight, window } => {
            let body = convolution(window);
            Function::plain("convolution", &[("input", input), ("weight", weight)], &[("out", out)], body)
        }
        Kernel::Collect { out, operands, slices } => membership(out, operands, slices, true),
        Kernel::Spread { out, operands, slices } => membership(out, operands, slices, false),
        Kernel::Scan { out, state, initial, operands, scan } => {
            recurrence(out, state, initial.as_ref(), operands, scan)
        }
        Kernel::InverseCholesky { out, matrix, jitter } => {
            let body = inverse_cholesky(matrix.count() / matrix.dims[2].pow(2), matrix.dims[2], *jitter);
            Function::plain("inverse_cholesky", &[("matrix", matrix)], &[("out", out)], body)
        }
        Kernel::Gather { out, input, axis, rows } => {
            Function::plain("gather", &[("input", input)], &[("out", out)], gather(&input.dims, *axis, rows))
        }
        Kernel::Zero { out } => {
            let body = format!("    for (ptrdiff_t i = 0; i < {}; i++)\n        out[i] = 0.0f;\n", out.count());
            Function::plain("zero", &[], &[("out", out)], body)
        }
        Kernel::Loop { .. } | Kernel::Reduce { .. } => unreachable!("they are written elsewhere"),
    }
}

/// Numbers in lines of 24.
fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let lines: Vec<String> = numbers.chunks(24).map(|chunk| format!("        {}", chunk.join(", "))).collect();
    lines.join(",\n")
}

fn gather(dims: &[usize], axis: usize, rows: &[u32]) -> String {
    let (blocks, inner) = (dims[..axis].iter().product::<usize>(), dims[axis + 1..].iter().product::<usize>());
    let (count, all) = (rows.len(), dims[axis]);
    format!(
        "    static const unsigned row[{count}] = {{
{list}
    }};
    for (ptrdiff_t i = 0; i < {blocks}; i++)
        for (ptrdiff_t j = 0; j < {count}; j++)
            for (ptrdiff_t k = 0; k < {inner}; k++)
                out[({count} * i + j) * {inner} + k] = input[({all} * i + row[j]) * {inner} + k];
",
        list = listed(rows)
    )
}

fn product(out: &View, left: &View, right: &View) -> Function {
    let batch = left.dims.len() - 2;
    let [rows, inner, columns] = [left.dims[batch], left.dims[batch + 1], right.dims[batch + 1]];
    let shift = |view: &View| {
        let terms = (0..batch).filter(|&axis| view.dims[axis] > 1 && view.strides[axis] != 0);
        let terms: Vec<String> = terms.map(|axis| format!(" + {} * {}", view.strides[axis], COUNTERS[axis])).collect();
        terms.concat()
    };
    let row = left.strides[batch];
    let width = columns.min(COLUMNS);
    let whole = columns.is_multiple_of(width);
    let sums = Sums {
        step: left.strides[batch + 1],
        across: right.strides[batch],
        width,
        count: if whole { width.to_string() } else { "count".to_owned() },
    };
    let (mut body, mut depth) = (String::new(), 1);
    open(&mut body, &left.dims[..batch], 0, &mut depth);
    let text = format!(
        "for (ptrdiff_t first = 0; first < {columns}; first += {width})
for (ptrdiff_t s = 0; s < {rows}; s += 2) {{
    const ptrdiff_t next = s + 1 < {rows} ? s + 1 : s;
{count}    const float *x = left{shift_left} + {row} * s, *y = left{shift_left} + {row} * next, *b = right{shift_right} + first;
    float *c = out{shift_out} + {columns} * s + first, *d = out{shift_out} + {columns} * next + first;
    float total[2][{width}];
{clear}{sums}    for (ptrdiff_t v = 0; v < {used}; v++) {{
        c[v] = total[0][v];
        d[v] = total[1][v];
    }}
}}",
        count = if whole {
            String::new()
        } else {
            format!("    const ptrdiff_t count = {columns} - first < {width} ? {columns} - first : {width};\n")
        },
        clear = sums.clear("total", 1),
        sums = sums.all(inner),
        used = sums.count,
        shift_left = shift(left),
        shift_right = shift(right),
        shift_out = shift(out),
    );
    text.lines().for_each(|text| line(&mut body, depth, text));
    Function::plain("product", &[("left", left), ("right", right)], &[("out", out)], body)
}

/// The sums of two rows of a product, for the columns `b` to `b + width`.
struct Sums {
    /// From one inner element of the left side to the next.
    step: isize,
    /// From one row of the right side to the next.
    across: isize,
    width: usize,
    /// Columns that there are, a number or a name.
    count: String,
}

impl Sums {
    fn clear(&self, name: &str, depth: usize) -> String {
        let (pad, width) = ("    ".repeat(depth), self.width);
        format!("{pad}for (ptrdiff_t v = 0; v < {width}; v++)\n{pad}    {name}[0][v] = {name}[1][v] = 0.0f;\n")
    }

    /// All inner elements: whole blocks by themselves, then the rest.
    fn all(&self, inner: usize) -> String {
        let blocks = if inner > BLOCK { inner / BLOCK * BLOCK } else { 0 };
        let mut text = String::new();
        if blocks > 0 {
            let width = self.width;
            text +=
                &format!("    for (ptrdiff_t t = 0; t < {blocks}; t += {BLOCK}) {{\n        float part[2][{width}];\n");
            text += &self.clear("part", 2);
            text += &self.fours("part", ("t", &format!("t + {BLOCK}")), 2);
            text += &format!("        for (ptrdiff_t v = 0; v < {width}; v++) {{\n");
            text +=
                "            total[0][v] += part[0][v];\n            total[1][v] += part[1][v];\n        }\n    }\n";
        }
        let fours = inner / 4 * 4;
        if fours > blocks {
            text += &self.fours("total", (&blocks.to_string(), &fours.to_string()), 1);
        }
        if inner > fours {
            let Sums { step, across, count, .. } = self;
            text += &format!(
                "    for (ptrdiff_t u = {fours}; u < {inner}; u++)
        for (ptrdiff_t v = 0; v < {count}; v++) {{
            total[0][v] += x[{step} * u] * b[{across} * u + v];
            total[1][v] += y[{step} * u] * b[{across} * u + v];
        }}
"
            );
        }
        text
    }

    /// Four inner elements at a time.
    fn fours(&self, name: &str, (from, to): (&str, &str), depth: usize) -> String {
        let Sums { step, across, count, .. } = self;
        let factors = |row: &str| {
            let factor = |k: usize| format!("{row}{k} = {row}[{step} * (u + {k})]");
            (0..4).map(factor).collect::<Vec<_>>().join(", ")
        };
        let text = format!(
            "for (ptrdiff_t u = {from}; u < {to}; u += 4) {{
    const float *b0 = b + {across} * u, *b1 = b0 + {across}, *b2 = b1 + {across}, *b3 = b2 + {across};
    const float {}, {};
    for (ptrdiff_t v = 0; v < {count}; v++) {{
        {name}[0][v] += x0 * b0[v] + x1 * b1[v] + x2 * b2[v] + x3 * b3[v];
        {name}[1][v] += y0 * b0[v] + y1 * b1[v] + y2 * b2[v] + y3 * b3[v];
    }}
}}",
            factors("x"),
            factors("y"),
        );
        let mut body = String::new();
        text.lines().for_each(|text| line(&mut body, depth, text));
        body
    }
}

fn convolution(window: &Window) -> String {
    let Window { input: [rows, columns, channels], output: [tall, wide, out], kernel, stride, before, groups } =
        *window;
    let (inner, each) = (channels / groups, out / groups);
    let sums = if inner == 1 && each == 1 {
        format!(
            "for (ptrdiff_t o = 0; o < {out}; o++)
                        sum[o] += from[o] * line[o];"
        )
    } else {
        format!(
            "for (ptrdiff_t c = 0; c < {inner}; c++)
                        for (ptrdiff_t g = 0; g < {groups}; g++)
                            for (ptrdiff_t o = 0; o < {each}; o++)
                                sum[{each} * g + o] += from[{inner} * g + c] * line[{out} * c + {each} * g + o];"
        )
    };
    format!(
        "    for (ptrdiff_t i = 0; i < {tall}; i++)
        for (ptrdiff_t j = 0; j < {wide}; j++) {{
            float sum[{out}];
            for (ptrdiff_t o = 0; o < {out}; o++)
                sum[o] = 0.0f;
            for (ptrdiff_t u = 0; u < {height}; u++) {{
                const ptrdiff_t row = {down} * i + u - {top};
                if (row < 0 || row >= {rows})
                    continue;
                for (ptrdiff_t v = 0; v < {width}; v++) {{
                    const ptrdiff_t column = {across} * j + v - {left};
                    if (column < 0 || column >= {columns})
                        continue;
                    const float *from = input + {channels} * ({columns} * row + column);
                    const float *line = weight + {size} * ({width} * u + v);
                    {sums}
                }}
            }}
            for (ptrdiff_t o = 0; o < {out}; o++)
                out[{out} * ({wide} * i + j) + o] = sum[o];
        }}
",
        height = kernel[0],
        width = kernel[1],
        down = stride[0],
        across = stride[1],
        top = before[0],
        left = before[1],
        size = inner * out,
    )
}

fn membership(out: &View, operands: &[View; 4], slices: &Slices, collect: bool) -> Function {
    let Slices { points, heads, slices, channels, width } = *slices;
    let row = width + usize::from(collect);
    let clear = match collect {
        true => format!("    for (ptrdiff_t i = 0; i < {}; i++)\n        out[i] = 0.0f;\n", heads * slices * row),
        false => String::new(),
    };
    let moved = match collect {
        true => format!(
            "            const float *value = moved + {width} * ({heads} * n + h);
            for (ptrdiff_t m = 0; m < {slices}; m++) {{
                const float share = weight[m] / sum;
                float *token = out + {row} * ({slices} * h + m);
                for (ptrdiff_t p = 0; p < {width}; p++)
                    token[p] += share * value[p];
                token[{width}] += share;
            }}
"
        ),
        false => format!(
            "            float value[{width}];
            for (ptrdiff_t p = 0; p < {width}; p++)
                value[p] = 0.0f;
            for (ptrdiff_t m = 0; m < {slices}; m++) {{
                const float share = weight[m] / sum, *token = moved + {width} * ({slices} * h + m);
                for (ptrdiff_t p = 0; p < {width}; p++)
                    value[p] += share * token[p];
            }}
            for (ptrdiff_t p = 0; p < {width}; p++)
                out[{width} * ({heads} * n + h) + p] = value[p];
"
        ),
    };
    let body = format!(
        "{clear}    for (ptrdiff_t n = 0; n < {points}; n++)
        for (ptrdiff_t h = 0; h < {heads}; h++) {{
            float weight[{slices}], largest = -INFINITY, sum = 0.0f;
            for (ptrdiff_t m = 0; m < {slices}; m++)
                weight[m] = offsets[{slices} * h + m];
            for (ptrdiff_t c = 0; c < {channels}; c++) {{
                const float query = queries[{channels} * ({heads} * n + h) + c], *key = keys + {slices} * ({channels} * h + c);
                for (ptrdiff_t m = 0; m < {slices}; m++)
                    weight[m] += query * key[m];
            }}
            for (ptrdiff_t m = 0; m < {slices}; m++)
                largest = weight[m] > largest ? weight[m] : largest;
            for (ptrdiff_t m = 0; m < {slices}; m++)
                sum += weight[m] = expf(weight[m] - largest);
{moved}        }}
"
    );
    let [queries, keys, offsets, moved] = operands;
    let reads = [("queries", queries), ("keys", keys), ("offsets", offsets), ("moved", moved)];
    Function::plain(if collect { "collect" } else { "spread" }, &reads, &[("out", out)], body)
}

fn recurrence(out: &View, state: &View, initial: Option<&View>, operands: &[View; 5], scan: &Recurrence) -> Function {
    let Recurrence { tokens, heads, channels, groups, states, directions, ref order } = *scan;
    let all = directions * heads;
    let start =
        if initial.is_some() { format!("initial[{} * head + k]", states * channels) } else { "0.0f".to_owned() };
    let body = format!(
        "    static const unsigned order[{count}] = {{
{list}
    }};
    for (ptrdiff_t k = 0; k < {size}; k++)
        out[k] = 0.0f;
    for (ptrdiff_t head = 0; head < {all}; head++) {{
        float *h = state + {cell} * head;
        const ptrdiff_t group = head * {groups} / {all};
        for (ptrdiff_t k = 0; k < {cell}; k++)
            h[k] = {start};
        for (ptrdiff_t l = 0; l < {tokens}; l++) {{
            const ptrdiff_t t = order[{tokens} * (head / {heads}) + l];
            const float decay = expf(log_decay[{all} * t + head]), step = gain[{all} * t + head];
            const float *x = signal + {channels} * ({heads} * t + head % {heads});
            const float *b = write + {states} * ({groups} * t + group), *c = read + {states} * ({groups} * t + group);
            float sum[{channels}];
            for (ptrdiff_t p = 0; p < {channels}; p++)
                sum[p] = 0.0f;
            for (ptrdiff_t n = 0; n < {states}; n++) {{
                const float in = step * b[n], from = c[n];
                for (ptrdiff_t p = 0; p < {channels}; p++) {{
                    h[{channels} * n + p] = decay * h[{channels} * n + p] + in * x[p];
                    sum[p] += h[{channels} * n + p] * from;
                }}
            }}
            for (ptrdiff_t p = 0; p < {channels}; p++)
                out[{channels} * ({heads} * t + head % {heads}) + p] += sum[p];
        }}
    }}
",
        count = order.len(),
        list = listed(order),
        size = tokens * heads * channels,
        cell = states * channels,
    );
    let [signal, log_decay, gain, write, read] = operands;
    let mut reads =
        vec![("signal", signal), ("log_decay", log_decay), ("gain", gain), ("write", write), ("read", read)];
    reads.extend(initial.map(|initial| ("initial", initial)));
    Function::plain("scan", &reads, &[("out", out), ("state", state)], body)
}

fn inverse_cholesky(count: usize, side: usize, jitter: f64) -> String {
    format!(
        "    for (ptrdiff_t m = 0; m < {count}; m++) {{
        const float *a = matrix + {size} * m;
        float *w = out + {size} * m;
        double factor[{side}][{side}], inverse[{side}][{side}], shift = 0.0;
        int fine = 0;
        for (int attempt = 0; attempt <= 10 && !fine; attempt++) {{
            shift = attempt == 0 ? 0.0 : attempt == 1 ? {jitter:e} : 10.0 * shift;
            fine = 1;
            for (int i = 0; i < {side}; i++)
                for (int j = 0; j <= i; j++) {{
                    double rest = a[{side} * i + j] + (i == j ? shift : 0.0);
                    for (int k = 0; k < j; k++)
                        rest -= factor[i][k] * factor[j][k];
                    if (i == j && !(rest > 0.0 && rest < INFINITY))
                        fine = 0;
                    factor[i][j] = i == j ? sqrt(rest) : rest / factor[j][j];
                }}
        }}
        for (int j = 0; j < {side}; j++)
            for (int i = 0; i < {side}; i++) {{
                double rest = i == j;
                for (int k = j; k < i; k++)
                    rest -= factor[i][k] * inverse[k][j];
                inverse[i][j] = i < j ? 0.0 : rest / factor[i][i];
                w[{side} * i + j] = fine ? (float)inverse[i][j] : NAN;
            }}
    }}
",
        size = side * side,
    )
}
