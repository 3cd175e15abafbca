//! Serves trained models over HTTP.
