//! report.html: one file that needs nothing else and runs nothing.

mod diff;

use super::ReportInput;
use super::content::{Content, Order, Section};
use super::phrase::html;
use super::runs::Completeness;

/// Colours in light and dark, narrow screens, paper.
const STYLE: &str = include_str!("html/style.css");
/// What the browser may load for this page: nothing, besides its own style.
const LOADS: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn write(content: &Content, input: &ReportInput<'_>) -> String {
    let title = content.title.to_html();
    let mut page = String::new();
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n",
        html(LOADS)
    ));
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.push_str("<meta name=\"referrer\" content=\"no-referrer\">\n");
    page.push_str(&format!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"));
    page.push_str(&format!("<header>\n<h1>{title}</h1>\n"));
    for fact in &content.facts {
        page.push_str(&format!("<p>{}</p>\n", fact.to_html()));
    }
    if content.completeness == Completeness::Incomplete {
        page.push_str("<p class=\"warning\"><strong>Incomplete:</strong> a run was stopped or cut off, or has not ended.</p>\n");
    }
    page.push_str("</header>\n<main>\n");
    for part in &content.sections {
        section(&mut page, part);
    }
    diff::write(&mut page, input.reviewed);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn section(page: &mut String, section: &Section) {
    let (list, class) = match section.order {
        Order::Numbered => ("ol", " class=\"first\""),
        Order::Plain => ("ul", ""),
    };
    page.push_str(&format!("<section{class}>\n<h2>{}</h2>\n<{list}>\n", html(section.title)));
    for item in &section.items {
        page.push_str(&format!("<li>{}</li>\n", item.to_html()));
    }
    if section.more > 0 {
        page.push_str(&format!("<li>and {} more</li>\n", section.more));
    }
    page.push_str(&format!("</{list}>\n</section>\n"));
}
