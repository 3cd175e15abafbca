//! The page: all artifacts in one file that needs no network.

use super::figures::drawing;
use super::show::{caption, gap};
use super::table::Filled;
use super::{Gathered, facts};
use crate::plot::Ink;
use crate::report::escape;
use anyhow::Result;
use lamo::paper::{Artifact, Content, Effort, published};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// The text of the page.
pub(super) fn page(artifacts: &[Artifact], gathered: &Gathered, effort: Effort) -> Result<String> {
    let title = published::text("paper.title").unwrap_or_default();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{}</title>\n\
         <style>{}{}{STYLE}</style></head>\n<body><main>\n<h1>{}</h1>\n",
        escape(title),
        Ink::variables(),
        Ink::dark_classes(),
        escape(title)
    );
    let _ = write!(
        page,
        "<p>Tables and figures of the paper, made by <code>lamo paper</code> with the grid <b>{}</b>. Our values are \
         <b>bold</b> or in colour, the published ones <span class=\"published\">grey</span>. The two are not to be subtracted: \
         our schedules are shorter unless the grid is <b>full</b>, and our data are made by our own solvers.</p>\n<nav>",
        effort.name()
    );
    for artifact in artifacts {
        let _ = write!(page, "<a href=\"#{}\">{}</a> ", artifact.id, escape(&artifact.name()));
    }
    page += "</nav>\n";
    for artifact in artifacts {
        section(&mut page, artifact, gathered, effort)?;
    }
    contradictions(&mut page);
    Ok(page + "</main></body></html>\n")
}

fn section(page: &mut String, artifact: &Artifact, gathered: &Gathered, effort: Effort) -> Result<()> {
    let (id, name) = (artifact.id, escape(&artifact.name()));
    let _ = writeln!(page, "<section id=\"{id}\"><h2>{name}. {}</h2>", escape(artifact.title));
    match &artifact.content {
        Content::Table(table) => {
            *page += &format!("<div class=\"wide\">{}</div>", Filled::new(table, &gathered.results)?.html());
        }
        Content::Gap(sentence) => *page += &format!("<p class=\"gap\">{}</p>", escape(sentence)),
        _ => {}
    }
    if let Some(words) = facts::words(&artifact.content, gathered)? {
        *page += &format!("<div class=\"wide\">{}</div>", facts::html(&words));
    }
    if let Some(drawing) = drawing(&artifact.content, gathered)? {
        let _ = write!(page, "<figure>{}</figure>", drawing.element(artifact.title));
    } else if let Some(gap) = gap(&artifact.content) {
        *page += &format!("<p class=\"gap\">{gap}</p>");
    }
    let _ = write!(page, "<p class=\"caption\">{}", escape(&caption(artifact, &gathered.results, effort)?));
    for note in &artifact.notes {
        let _ = write!(page, " {}", escape(note));
    }
    *page += "</p></section>\n";
    Ok(())
}

/// Where the paper contradicts itself.
fn contradictions(page: &mut String) {
    *page += "<section id=\"contradictions\"><h2>Where the paper contradicts itself or the released code</h2><div class=\"wide\">\
              <table class=\"words\"><thead><tr><th>here</th><th>there</th><th>what</th></tr></thead><tbody>";
    for row in published::contradictions() {
        let [here, there, what] = [&row.here, &row.there, &row.what].map(|text| escape(text));
        let _ = write!(page, "<tr><td>{here}</td><td>{there}</td><td>{what}</td></tr>");
    }
    *page += "</tbody></table></div></section>\n";
}
