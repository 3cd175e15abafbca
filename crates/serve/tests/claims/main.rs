//! Claims about the server, asked over real connections on the loopback.

mod clients;
mod equality;
mod limits;
mod malformed;
mod protocol;
mod routes;
mod stop;
mod support;
