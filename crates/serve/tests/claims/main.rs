//! Claims about the server, asked over real connections on the loopback.

#![allow(clippy::print_stderr)] // a claim that is skipped says why

mod clients;
mod equality;
mod limits;
mod malformed;
mod protocol;
mod routes;
mod stop;
mod support;
