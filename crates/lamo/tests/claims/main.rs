//! What lamo claims, one module per subject.

#[cfg(feature = "cuda")]
mod cuda; // kernels compile
mod dataset; // data sets on disk are the same bytes however they were made, and damage is found
mod experiments; // shipped experiments are what they say
mod fixture; // reading fixtures, comparing with them
mod fno; // the Fourier operator equals its library and its own definition
mod fuzz; // readers answer whatever bytes they meet
mod import; // arrays of one's own become data sets
mod inference; // one checkpoint file predicts, from and to files of arrays
mod initialisation; // first values are drawn as the official classes draw them
mod layers; // embeddings, patches and slices equal the authors', each alone
mod loops; // the training loop takes the authors' steps, and every shipped experiment runs
mod operators; // norms, maps and scan orders equal PyTorch's and the authors'
mod optimisation; // the optimiser equals PyTorch's, moments and all
mod parity; // models and operators equal the authors' code, number for number
mod published; // shipped experiments are the published ones, value by value
mod readers; // array files are read as their writers show them; damage ends in a sentence
mod recipes; // the authors' training recipes, step by step
mod runs; // a run goes on from any checkpoint as if nothing had happened; what breaks is told
mod support; // what the claims about training share
mod theory; // the paper's theory
mod training; // a whole step as one program learns
