//! The page, whose files are part of the program. A new file in `page/` needs a row here.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A file of the page.
pub(crate) struct File {
    /// Its address.
    pub(crate) path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file.
pub(crate) const FILES: &[File] = &[
    File { path: "/", content_type: "text/html; charset=utf-8", bytes: include_bytes!("../page/index.html") },
    File { path: "/api.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/api.js") },
    File { path: "/card.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/card.js") },
    File { path: "/darcy.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/darcy.js") },
    File { path: "/dom.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/dom.js") },
    File { path: "/explore.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/explore.js") },
    File { path: "/fields.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/fields.js") },
    File { path: "/icon.svg", content_type: "image/svg+xml", bytes: include_bytes!("../page/icon.svg") },
    File { path: "/layouts.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/layouts.js") },
    File { path: "/lines.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/lines.js") },
    File { path: "/maps.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/maps.js") },
    File { path: "/media.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/media.js") },
    File { path: "/mesh.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/mesh.js") },
    File { path: "/npy.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/npy.js") },
    File { path: "/page.css", content_type: "text/css; charset=utf-8", bytes: include_bytes!("../page/page.css") },
    File { path: "/page.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/page.js") },
    File { path: "/player.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/player.js") },
    File { path: "/samples.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/samples.js") },
    File { path: "/vtu.js", content_type: JAVASCRIPT, bytes: include_bytes!("../page/vtu.js") },
];

/// Scripts, styles, pictures and requests of the page come from and go to this server alone; `blob:` are files that it saves.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file as an answer.
pub(crate) fn answer(file: &'static File) -> Response {
    let headers = [
        (header::CONTENT_TYPE, file.content_type),
        (header::CACHE_CONTROL, "no-cache"), // another version of the server may answer next
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, file.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
            assert!(FILES.iter().any(|file| file.path == path), "page.rs has no row for {name}");
        }
    }
}
