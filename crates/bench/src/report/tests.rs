use super::*;
use crate::fixture;

#[test]
fn the_summary_looks_like_this() {
    insta::assert_json_snapshot!(fixture::summary());
}

#[test]
fn the_summary_comes_back_equal() {
    let summary = fixture::summary();
    let json = serde_json::to_string(&summary).unwrap();
    let again = serde_json::from_str::<Summary>(&json).unwrap();
    // The pages show all of it, in as many digits as matter.
    assert_eq!(markdown(&again).unwrap(), markdown(&summary).unwrap());
    assert_eq!((again.sets.len(), &again.host), (summary.sets.len(), &summary.host));
}

#[test]
fn the_page_in_markdown_looks_like_this() {
    insta::assert_snapshot!(markdown(&fixture::summary()).unwrap());
}

#[test]
fn the_table_looks_like_this() {
    insta::assert_snapshot!(terminal(&fixture::summary(), 140));
}

#[test]
fn the_page_in_html_needs_no_other_file_and_escapes_what_it_shows() {
    let mut summary = fixture::summary();
    summary.host.commands = vec!["cargo xtask experiment --set 'a.b=<script>'".into()];
    summary.notes = vec!["<b>`code`</b>".into()];
    let page = html(&summary, &svg(&summary).unwrap()).unwrap();
    for outside in ["http-equiv", "<script", "<link", "<img", "src=", "url("] {
        assert!(!page.contains(outside), "{outside} is in the page");
    }
    let links = page.matches("http").count();
    assert_eq!(links, page.matches("http://www.w3.org/2000/svg").count(), "only the name space of the figure");
    for part in [
        "&lt;script&gt;",
        "&lt;b&gt;<code>code</code>&lt;/b&gt;",
        "prefers-color-scheme",
        "scope=\"row\"",
        "scope=\"col\"",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert!(!page.contains("<?xml"), "a declaration inside a page is an error");
}

#[test]
fn the_figure_names_its_counters_and_every_policy() {
    let summary = fixture::summary();
    let figure = svg(&summary).unwrap();
    for part in ["peak heap.in_use", "time per image", "0 %", "fake cpu", "unsupported", "failed"] {
        assert!(figure.contains(part), "{part} is not in the figure");
    }
    for arm in summary.sets.iter().flat_map(|set| &set.arms) {
        assert!(figure.contains(&arm.arm), "{} is not in the figure", arm.arm);
    }
}

#[test]
fn an_experiment_without_a_single_completed_run_has_reports_too() {
    let mut records = fixture::records();
    for record in &mut records {
        record.outcome = crate::record::Outcome::Failed { message: "no".into() };
        record.result = None;
    }
    let summary = crate::stats::summarise(&records, &fixture::host(), &toml::Table::new(), Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let written = export(&summary, &Output::open(folder.path())).unwrap();
    assert_eq!(written.len(), 5);
    assert!(markdown(&summary).unwrap().contains("failed: no"));
}

#[test]
fn export_writes_every_file_it_names() {
    let folder = tempfile::tempdir().unwrap();
    export(&fixture::summary(), &Output::open(folder.path())).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["figure.png", "figure.svg", "report.html", "report.md", "summary.json"]);
    let png = std::fs::read(folder.path().join("figure.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let error = export(&fixture::summary(), &Output::open(&gone)).unwrap_err().to_string();
    assert!(error.contains("gone") && error.contains("summary.json"), "{error}");
}
