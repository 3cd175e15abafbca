//! The functions that a WebAssembly module exports.
//!
//! A call has three steps. The caller asks for room ([`lamo_room`]) and writes its bytes there; it calls a function, which takes
//! them and returns 0, or 1 if it failed; it reads the answer, or the sentence of the failure, at [`lamo_answer`] for
//! [`lamo_answer_length`] bytes. Memory belongs to this side throughout, so nothing has to be freed, and Rust needs no pointer
//! of the caller's.
//!
//! A panic ends the module with a trap. Its sentence is the answer then; the caller makes a new instance.

#![allow(unsafe_code)] // exported names are declared so; each is defined once

use super::Model;
use std::cell::RefCell;

/// Bytes that the caller writes and reads, and the model that is open. A module has one thread.
#[derive(Default)]
struct State {
    request: Vec<u8>,
    answer: Vec<u8>,
    model: Option<Model>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Puts the answer of a call in place; 0 if it succeeded, 1 if it failed.
fn answered(answer: Result<Vec<u8>, String>) -> u32 {
    let failed = u32::from(answer.is_err());
    STATE.with_borrow_mut(|state| state.answer = answer.unwrap_or_else(String::into_bytes));
    failed
}

/// Memory for a request of so many bytes, filled with zeros; null where memory is short.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_room(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        let mut room = Vec::new();
        if room.try_reserve_exact(bytes).is_err() {
            return std::ptr::null_mut();
        }
        room.resize(bytes, 0);
        state.request = room;
        state.request.as_mut_ptr()
    })
}

/// Where the answer of the last call begins.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_answer() -> *const u8 {
    STATE.with_borrow(|state| state.answer.as_ptr())
}

/// How many bytes the answer of the last call has.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_answer_length() -> usize {
    STATE.with_borrow(|state| state.answer.len())
}

/// Opens the model whose file is the request, in place of an earlier one; the answer is its card, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_open() -> u32 {
    #[cfg(target_arch = "wasm32")] // elsewhere a panic unwinds, and its hook belongs to the program
    std::panic::set_hook(Box::new(|panic| {
        answered(Err(format!("lamo failed, which is an error in lamo: {panic}")));
    }));
    let (bytes, _) = STATE.with_borrow_mut(|state| (std::mem::take(&mut state.request), state.model.take()));
    answered(Model::open(bytes).map_err(|error| error.to_string()).map(|model| {
        let card = model.card().into_bytes();
        STATE.with_borrow_mut(|state| state.model = Some(model));
        card
    }))
}

/// Calls a function of the model with the request.
fn asked(function: fn(&mut Model, Vec<u8>) -> Result<Vec<u8>, lamo::Error>) -> u32 {
    let (bytes, model) = STATE.with_borrow_mut(|state| (std::mem::take(&mut state.request), state.model.take()));
    let Some(mut model) = model else { return answered(Err("no model is open: open one first".to_owned())) };
    let answer = function(&mut model, bytes).map_err(|error| error.to_string());
    STATE.with_borrow_mut(|state| state.model = Some(model));
    answered(answer)
}

/// Predicts the request, a file of arrays; the answer is the file of the prediction.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_predict() -> u32 {
    asked(Model::predict)
}

/// Solves for the request, the file of a permeability; the answer is the file of the true pressure.
#[unsafe(no_mangle)]
pub extern "C" fn lamo_solve() -> u32 {
    asked(Model::solve)
}
