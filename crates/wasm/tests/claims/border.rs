//! The exported functions, called as JavaScript calls them: room, request, answer.

#![allow(unsafe_code)] // this side of the border reads and writes the memory of the other one

use super::{SIDE, darcy, npy, permeabilities};
use lamo_wasm::Model;
use lamo_wasm::border::{lamo_answer, lamo_answer_length, lamo_open, lamo_predict, lamo_room};

/// The answer of a call, or the sentence of its failure.
fn call(function: extern "C" fn() -> u32, request: &[u8]) -> Result<Vec<u8>, String> {
    // SAFETY: the room has as many bytes as were asked for, and the answer as many as are said.
    let (failed, answer) = unsafe {
        let room = lamo_room(request.len());
        assert!(!room.is_null());
        room.copy_from(request.as_ptr(), request.len());
        (function(), std::slice::from_raw_parts(lamo_answer(), lamo_answer_length()).to_vec())
    };
    if failed == 0 { Ok(answer) } else { Err(String::from_utf8(answer).unwrap()) }
}

#[test]
fn a_model_is_opened_and_predicts_and_failures_are_sentences() {
    assert_eq!(call(lamo_predict, b"").unwrap_err(), "no model is open: open one first");
    assert!(call(lamo_open, b"nothing").unwrap_err().starts_with("the model"));
    let card = call(lamo_open, &darcy()).unwrap();
    assert_eq!(String::from_utf8(card).unwrap(), Model::open(darcy()).unwrap().card());

    let input = npy(&[SIDE, SIDE], permeabilities(1, SIDE));
    let expected = Model::open(darcy()).unwrap().predict(input.clone()).unwrap();
    assert!(call(lamo_predict, &input).unwrap() == expected);
    assert!(call(lamo_predict, &input[..200]).unwrap_err().contains("the inputs"));
    assert!(call(lamo_predict, &input).unwrap() == expected);
}

#[test]
fn room_beyond_the_memory_is_null() {
    assert!(lamo_room(usize::MAX).is_null());
}
