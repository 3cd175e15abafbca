//! What lamo claims, one module per subject.

#[allow(dead_code)] // the claims of the command use all of it
mod attention; // the attentions of the rivals are their definitions
mod bombs; // crafted files
#[cfg(feature = "cuda")]
mod cuda; // kernels compile
mod damage; // damaged runs and checkpoints are found
mod dataset; // data sets on disk are the same bytes however they were made, and damage is found
mod dropout; // values left out at random in training: resume, predictions, rates
mod experiments; // shipped experiments are what they say
mod explain; // hidden matrices are the mixers, influences are derivatives
mod fixture; // reading fixtures, comparing with them
mod fno; // the Fourier operator equals its library and its own definition
mod fuzz; // readers answer whatever bytes they meet
mod given; // files of several fields belong together, and only a continued series may be longer
mod grid_models; // convolutional and factorised rivals: their scripts, and what small grids do
mod grid_norms; // batch norm and instance norm are their definitions
mod import; // your own arrays become data sets
mod inference; // one checkpoint file predicts, from and to files of arrays
mod inferred; // weights tell their model
mod initialisation; // first values are drawn as the official classes draw them
mod jobs; // what a listener hears, how a cancelled job is resumed, and the kind of each failure
mod labels; // how far the labels of a data set are from finer ones
mod layers; // embeddings, patches and slices equal the authors', each alone
mod length; // how long a training is chosen to be
mod lever_equations; // the layers of the levers are their equations
mod levers; // levers of LaMO: off, as before; on, their equations
mod library; // one crate is enough, and the README's program is an example
mod lines; // models in one dimension
mod loops; // the training loop takes the authors' steps, and every shipped experiment runs
mod losses; // every loss is what it says, its gradient too
mod mesh_cases;
mod mesh_lattices; // a folder of mesh files becomes a data set, and predictions become meshes
mod mesh_pieces; // meshes in several pieces are one body
mod mesh_series; // lists of mesh files are time series, flat meshes have distances to curves
mod meshes; // mesh files: VTK and meshio agree with what is read and written; damage ends in a sentence
mod misread; // arrays that could be taken for something else
mod numbers; // outputs that are numbers of the whole sample
mod ono; // orthonormal features: the guarded factor and the running covariance
mod operators; // norms, maps and scan orders equal PyTorch's and the authors'
mod optimisation; // the optimiser equals PyTorch's, moments and all
mod pairs; // every shipped pair of a model and a benchmark computes what its equations say, on every device
mod paper;
mod parity; // models and operators equal the authors' code, number for number
mod pieces; // a prediction whose points come in pieces is that of all points
mod published; // shipped experiments are the published ones, value by value
mod ragged; // samples with different numbers of points
mod ragged_data; // and their files, data sets and runs
mod readers; // array files are read as their writers show them; damage ends in a sentence
mod recipes; // the authors' training recipes, step by step
mod registry; // every row of the registry of models keeps what it promises
mod rollout; // windows on the host, one forward pass at a time, are the roll-out on the device
mod rooms; // rooms use only rooms below them, and other rules of the code about itself
mod runs; // a run resumed from any checkpoint ends with the same bits; failures are one sentence
mod some_points; // training on some points of each sample
mod start; // a training that starts from another model
mod states; // running statistics are saved, resumed, moved and predicted with
mod support; // what the claims about training share
mod symmetries; // symmetries of a benchmark in training and evaluation
mod theory; // the paper's theory
mod training; // a whole step as one program learns
mod training_levers; // Muon, the average of the parameters, noise on the past of a roll-out
mod trajectories; // time series cut into windows, a file for each sample, tables; which samples are for testing
mod trend; // a linear function of what is known, to which a model adds
mod validation; // validation samples choose the best epoch and the end of a training
mod versions; // what lamo 0.1 wrote still opens
mod volume_data; // data on regular grids of three axes: import, training, resume
mod volumes; // models in three dimensions
mod windows; // training on windows of time series
