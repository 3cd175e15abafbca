//! The computation to translate: the operators of the forward pass in physical units, with everything that does not depend on the
//! inputs computed beforehand.
//!
//! Graphs have static shapes, and a file should take any number of samples, and of points in a cloud. So the graph is built twice,
//! with two prime numbers of samples and of points, and compared operator by operator: an extent that is n times the samples in
//! both is n times the batch, and so for points and for samples times points; an extent that is equal in both is fixed, and
//! anything else is refused.

use crate::refusal::require;
use lamo::error::{Error, Refusal};
use lamo::inference::{Physical, Port};
use lamo::tensor::reference::{self, Bindings};
use lamo::tensor::{Graph, MODEL_STATES, Operation, PARAMETERS, Section, Span, Step};
use lamo::{Grid, Operator};
use std::collections::HashMap;

/// Samples and points of two graphs: primes, and more of them in case an extent of a model is one of the first.
const COUNTS: [[Counts; 2]; 3] = [
    [Counts { samples: 101, points: 131 }, Counts { samples: 103, points: 137 }],
    [Counts { samples: 107, points: 139 }, Counts { samples: 109, points: 149 }],
    [Counts { samples: 113, points: 151 }, Counts { samples: 127, points: 157 }],
];

/// Samples and points of a graph.
#[derive(Clone, Copy, Debug)]
struct Counts {
    samples: usize,
    points: usize,
}

/// An extent of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Extent {
    /// So many.
    Fixed(usize),
    /// So many times the number of samples.
    Samples(usize),
    /// So many times the number of points of a sample.
    Points(usize),
    /// So many times the number of points of all samples.
    Both(usize),
}

impl Extent {
    pub(crate) const ONE: Extent = Extent::Fixed(1);

    /// The number, which is that of one sample with one point where it depends on them.
    pub(crate) fn of_one(self) -> usize {
        match self {
            Extent::Fixed(extent) | Extent::Samples(extent) | Extent::Points(extent) | Extent::Both(extent) => extent,
        }
    }

    /// The number for so many points of one sample.
    pub(crate) fn with(self, points: usize) -> usize {
        match self {
            Extent::Fixed(extent) | Extent::Samples(extent) => extent,
            Extent::Points(extent) | Extent::Both(extent) => extent * points,
        }
    }

    /// One extent for those of two graphs.
    fn of([one, two]: [usize; 2], counts: [Counts; 2]) -> Option<Extent> {
        if one == two {
            return Some(Extent::Fixed(one));
        }
        let times = |of: fn(Counts) -> usize| {
            let [first, second] = counts.map(of);
            Some(one / first).filter(|times| times * first == one && times * second == two)
        };
        let samples = times(|counts| counts.samples).map(Extent::Samples);
        let points = || times(|counts| counts.points).map(Extent::Points);
        samples.or_else(points).or_else(|| times(|counts| counts.samples * counts.points).map(Extent::Both))
    }
}

/// Fixed values, as f32 programs have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    /// Name of the parameter, where it is one.
    pub(crate) name: Option<String>,
    pub(crate) values: Vec<f32>,
}

/// What a slice or an embedding takes of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All of it, however long it is.
    Whole,
    /// Fixed elements.
    Fixed(Span),
    /// Elements that depend on the numbers of samples and points.
    Counted { start: Extent, length: Extent },
}

/// One operator.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What it computes. The spans of `Slice` and `Embed` are those of one graph; `cuts` are those of all.
    pub(crate) operation: Operation,
    pub(crate) operands: Vec<usize>,
    pub(crate) dims: Vec<Extent>,
    /// What a slice or an embedding takes of each axis; empty for the others.
    pub(crate) cuts: Vec<Cut>,
    /// Its value, where it does not depend on the inputs.
    pub(crate) constant: Option<Constant>,
    /// Whether an output needs it.
    pub(crate) needed: bool,
}

/// The computation of an operator on a grid.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) physical: Physical,
    /// Operands before their users.
    pub(crate) nodes: Vec<Node>,
    /// The nodes of the inputs that the computation reads, and their ports.
    pub(crate) inputs: Vec<(Port, usize)>,
    pub(crate) outputs: Vec<(Port, usize)>,
}

impl Plan {
    /// For any number of samples on a grid.
    pub(crate) fn of_samples(operator: &Operator, grid: Grid) -> Result<Plan, Error> {
        Plan::merged(operator, grid, |_| grid)
    }

    /// For any number of samples, which are clouds with any number of points. Refused where a model depends on the number of points
    /// in more than extents.
    pub(crate) fn of_clouds(operator: &Operator, grid: Grid) -> Result<Plan, Error> {
        Plan::merged(operator, grid, |counts| Grid::Cloud { points: counts.points })
    }

    fn merged(operator: &Operator, grid: Grid, grid_of: impl Fn(Counts) -> Grid) -> Result<Plan, Error> {
        let mut refused = None;
        for counts in COUNTS {
            let graphs = [Graph::new(), Graph::new()];
            for (graph, counts) in graphs.iter().zip(counts) {
                operator.physical(graph, grid_of(counts), counts.samples)?;
            }
            let physical = operator.physical(&Graph::new(), grid, 1)?;
            let walks = [graphs[0].walk(), graphs[1].walk()];
            let found = merged(&walks, counts).and_then(|nodes| {
                let mut plans = graphs
                    .iter()
                    .zip(&walks)
                    .map(|(graph, walk)| Plan::folded(graph, walk, nodes.clone(), physical.clone()));
                let [Some(one), Some(two)] = [plans.next(), plans.next()] else { return Err(differ()) };
                let same = one.nodes.iter().zip(&two.nodes).all(|(one, two)| one.constant == two.constant);
                require(same, differ).map(|()| one)
            });
            match found {
                Ok(plan) => return Ok(plan),
                Err(refusal) => refused = Some(refusal.within(format!("model {}", operator.model.name))),
            }
        }
        Err(refused.unwrap_or_else(|| Refusal::said("there is no graph")).into())
    }

    /// Whether the number of points is free.
    pub(crate) fn has_any_points(&self) -> bool {
        let is_free = |extent: &Extent| matches!(extent, Extent::Points(_));
        self.inputs.iter().any(|(_, place)| self.nodes[*place].dims.iter().any(is_free))
    }

    /// For one sample at a time.
    pub(crate) fn of_one(operator: &Operator, grid: Grid) -> Result<Plan, Error> {
        let graph = Graph::new();
        let physical = operator.physical(&graph, grid, 1)?;
        let walk = graph.walk();
        let node = |step: &Step<'_>| Node {
            operation: step.operation.clone(),
            operands: step.operands.clone(),
            dims: step.shape.dims().iter().map(|&extent| Extent::Fixed(extent)).collect(),
            cuts: spans(step, &walk)
                .into_iter()
                .map(|(span, extent)| if span == Span::all(extent) { Cut::Whole } else { Cut::Fixed(span) })
                .collect(),
            constant: None,
            needed: false,
        };
        let nodes = walk.iter().map(node).collect();
        Ok(Plan::folded(&graph, &walk, nodes, physical))
    }

    /// Computes what does not depend on the inputs, in f64, and marks what the outputs need.
    fn folded(graph: &Graph, walk: &[Step<'_>], mut nodes: Vec<Node>, physical: Physical) -> Plan {
        let outputs = graph.outputs();
        let mut fixed = vec![false; nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            fixed[place] = is_fixed(node) && node.operands.iter().all(|&operand| fixed[operand]);
        }
        let roots: Vec<usize> = outputs.iter().map(|(_, root)| *root).collect();
        roots.iter().for_each(|&root| nodes[root].needed = true);
        let mut wanted = Vec::new();
        for place in (0..nodes.len()).rev() {
            if !nodes[place].needed {
                continue;
            }
            // A repeated constant is smaller before it is repeated.
            if fixed[place] && nodes[place].operation != Operation::Expand {
                wanted.push(place);
                continue;
            }
            for operand in nodes[place].operands.clone() {
                nodes[operand].needed = true;
            }
        }
        let mut bindings: Bindings<'_> = HashMap::new();
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect();
        bindings.insert(PARAMETERS, wide(&physical.parameters));
        bindings.insert(MODEL_STATES, wide(&physical.states));
        let tensors: Vec<_> = wanted.iter().map(|&place| walk[place].tensor).collect();
        let found = reference::evaluate(graph, &bindings, &tensors);
        let sections = [graph.sections(), graph.state_sections()];
        for (&place, array) in wanted.iter().zip(found) {
            let values = array.values.iter().map(|&value| value as f32).collect();
            nodes[place].constant = Some(Constant { name: parameter_name(walk, place, &sections), values });
        }
        let find = |port: &Port| {
            let is_it = |node: &Node| node.needed && node.operation == Operation::Input(port.name.clone());
            nodes.iter().position(is_it).map(|place| (port.clone(), place))
        };
        let inputs = physical.inputs.iter().filter_map(find).collect();
        let outputs = physical.outputs.iter().cloned().zip(roots).collect();
        Plan { physical, inputs, outputs, nodes }
    }
}

/// Whether the value is the same for every input, if those of the operands are.
fn is_fixed(node: &Node) -> bool {
    let fixed = |extent: &Extent| matches!(extent, Extent::Fixed(_));
    match &node.operation {
        Operation::Input(_) | Operation::IndexInput(_) => false,
        Operation::State(name) => name == PARAMETERS || name == MODEL_STATES,
        _ => node.dims.iter().all(fixed),
    }
}

/// The name of a parameter or a model state, where a node is one.
fn parameter_name(walk: &[Step<'_>], place: usize, sections: &[Vec<Section>; 2]) -> Option<String> {
    let place = if walk[place].operation == Operation::Reshape { walk[place].operands[0] } else { place };
    let Operation::Slice(spans) = &walk[place].operation else { return None };
    let Operation::State(state) = &walk[walk[place].operands[0]].operation else { return None };
    let [span] = spans[..] else { return None };
    let sections = if state == PARAMETERS { &sections[0] } else { &sections[1] };
    let found = sections.iter().find(|section| section.range() == (span.start..span.start + span.length));
    found.map(|section| section.name.clone())
}

fn differ() -> Refusal {
    Refusal::about("export", "its graph depends on the number of samples or points in more than extents")
}

/// One list of operators for any number of samples, and of points where they differ.
fn merged(walks: &[Vec<Step<'_>>; 2], counts: [Counts; 2]) -> Result<Vec<Node>, Refusal> {
    require(walks[0].len() == walks[1].len(), differ)?;
    let mut nodes: Vec<Node> = Vec::with_capacity(walks[0].len());
    for (one, two) in walks[0].iter().zip(&walks[1]) {
        let [first, second] = [one.shape.dims(), two.shape.dims()];
        require(first.len() == second.len() && one.operands == two.operands, differ)?;
        let pairs = first.iter().zip(second).map(|(&one, &two)| Extent::of([one, two], counts));
        let dims: Vec<Extent> = pairs.collect::<Option<_>>().ok_or_else(differ)?;
        let of_samples = |extent: &&Extent| matches!(extent, Extent::Samples(_) | Extent::Both(_));
        require(dims.iter().filter(of_samples).count() <= 1, differ)?;
        let pairs = spans(one, &walks[0]).into_iter().zip(spans(two, &walks[1]));
        let cuts = pairs.map(|((first, extent), (second, other))| cut([first, second], [extent, other], counts));
        let cuts = cuts.collect::<Option<Vec<Cut>>>().ok_or_else(differ)?;
        require(one.operation == two.operation || !cuts.is_empty(), differ)?;
        let (operation, operands) = (one.operation.clone(), one.operands.clone());
        nodes.push(Node { operation, operands, dims, cuts, constant: None, needed: false });
    }
    Ok(nodes)
}

/// The spans of a slice or an embedding, and the extents that they are cut out of.
fn spans(step: &Step<'_>, walk: &[Step<'_>]) -> Vec<(Span, usize)> {
    let (spans, dims) = match &step.operation {
        Operation::Slice(spans) => (spans, walk[step.operands[0]].shape.dims()),
        Operation::Embed(spans) => (spans, step.shape.dims()),
        _ => return Vec::new(),
    };
    spans.iter().copied().zip(dims.iter().copied()).collect()
}

/// One cut for spans of two graphs.
fn cut([one, two]: [Span; 2], extents: [usize; 2], counts: [Counts; 2]) -> Option<Cut> {
    if one == Span::all(extents[0]) && two == Span::all(extents[1]) {
        return Some(Cut::Whole);
    }
    if one == two && (extents[0] == extents[1] || one.step == 1) {
        return Some(Cut::Fixed(one));
    }
    let start = Extent::of([one.start, two.start], counts)?;
    let length = Extent::of([one.length, two.length], counts)?;
    (one.step == 1 && two.step == 1).then_some(Cut::Counted { start, length })
}
