//! report.md.

use super::content::{Content, Order};
use super::runs::Completeness;

pub(super) fn write(content: &Content) -> String {
    let mut text = format!("# {}\n\n", content.title.to_markdown());
    for fact in &content.facts {
        text.push_str(&fact.to_markdown());
        text.push_str("\n\n");
    }
    if content.completeness == Completeness::Incomplete {
        text.push_str("**Incomplete:** a run was stopped or cut off, or has not ended.\n\n");
    }
    for section in &content.sections {
        text.push_str(&format!("## {}\n\n", section.title));
        for (at, item) in section.items.iter().enumerate() {
            let mark = match section.order {
                Order::Numbered => format!("{}.", at + 1),
                Order::Plain => "-".to_owned(),
            };
            text.push_str(&format!("{mark} {}\n", item.to_markdown()));
        }
        if section.more > 0 {
            text.push_str(&format!("- and {} more\n", section.more));
        }
        text.push('\n');
    }
    text
}
