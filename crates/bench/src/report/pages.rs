//! `report.md` and `report.html`.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};

use super::ReportError;
use super::view::View;
use crate::stats::Summary;

/// `report.md`.
///
/// # Errors
///
/// [`ReportError::Page`].
pub fn markdown(summary: &Summary) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("report.md", include_str!("../../templates/report.md"))?;
    Ok(environment.get_template("report.md")?.render(context! { view => view(summary) })?)
}

/// `report.html`, which needs no other file: `figure` is put into it.
///
/// # Errors
///
/// [`ReportError::Page`].
pub fn html(summary: &Summary, figure: &str) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("code", code);
    environment.add_template("report.html", include_str!("../../templates/report.html"))?;
    // Inside a page, an `svg` element has no XML declaration and scales with the text.
    let figure = figure.find("<svg").map_or(figure, |start| &figure[start..]);
    Ok(environment.get_template("report.html")?.render(context! { view => view(summary), figure })?)
}

fn view(summary: &Summary) -> Value {
    Value::from(Serde(View::of(summary)))
}

fn environment<'a>() -> Result<Environment<'a>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_filter("cell", |text: &str| text.replace('|', "\\|").replace('\n', " "));
    Ok(environment)
}

/// Escapes `text` for HTML and turns what stands between back quotes into `code` elements.
fn code(text: &str) -> Value {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut html = String::new();
    for (index, part) in escaped.split('`').enumerate() {
        if index % 2 == 1 {
            html.push_str("<code>");
            html.push_str(part);
            html.push_str("</code>");
        } else {
            html.push_str(part);
        }
    }
    Value::from_safe_string(html)
}
