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

/// The summary of a baseline and of `subset`, one run each, both changed by `change`.
fn pair(change: impl Fn(&mut crate::run::spec::RunResult, &str)) -> Summary {
    let records: Vec<_> = ["baseline", "subset"]
        .into_iter()
        .map(|arm| {
            let heap = if arm == "baseline" { 100 } else { 60 } * fixture::MIB;
            let mut record =
                fixture::completed(data::SetId::Mnist, arm, fixture::Takes { heap, ..fixture::BASE }).remove(0);
            change(record.result.as_mut().unwrap(), arm);
            record
        })
        .collect();
    crate::stats::summarise(&records, &fixture::host(), &toml::Table::new(), Vec::new())
}

/// The row of `arm` in the table of verdicts.
fn row(summary: &Summary, arm: &str) -> String {
    let page = markdown(summary).unwrap();
    page.lines().find(|line| line.starts_with(&format!("| {arm} | "))).unwrap().to_owned()
}

#[test]
fn one_pair_of_runs_is_marked_in_the_headline_and_beside_the_verdict() {
    let summary = pair(|_, _| {});
    assert!(row(&summary, "subset").contains("saves (1 pair)"));
    assert!(markdown(&summary).unwrap().contains("one pair of runs, no interval"));
    assert!(!markdown(&fixture::summary()).unwrap().contains("one pair of runs, no interval: repeat"));
}

#[test]
fn a_missing_time_is_explained() {
    use crate::run::spec::StepRole;
    let summary = pair(|result, _| {
        result.steps.truncate(3);
        for (index, step) in result.steps.iter_mut().enumerate() {
            step.role = if index < 2 { StepRole::Warmup } else { StepRole::Sampled };
        }
    });
    for arm in ["baseline", "subset"] {
        let row = row(&summary, arm);
        assert!(row.contains("of 3 steps 2 were warm-up and 1 sampled memory"), "{row}");
    }
}

#[test]
fn a_run_whose_loss_is_no_number_has_diverged() {
    let summary = pair(|result, arm| {
        if arm == "subset" {
            result.epochs[0].valid_loss = None;
        }
    });
    assert!(row(&summary, "subset").contains("training diverged in 1 of 1 runs"), "{}", row(&summary, "subset"));
    assert!(!row(&summary, "baseline").contains("diverged"));
}

#[test]
fn test_sets_and_batches_that_differ_in_size_are_named() {
    let summary = pair(|result, arm| {
        if arm == "subset" {
            (result.train_images, result.test_images) = (12, 4);
            for step in &mut result.steps {
                step.images = 12;
            }
        }
    });
    let row = row(&summary, "subset");
    for part in [
        "tested on 4 images, the baseline on 96",
        "largest micro-batch 12 images, the baseline's 32",
        "its 12 training",
    ] {
        assert!(row.contains(part), "{part} is not in: {row}");
    }
}

#[test]
fn counters_that_only_a_gpu_has_are_not_called_unsampled_on_a_cpu() {
    use crate::run::spec::PeakReading;
    let absent = || PeakReading::Absent { why: "it was never sampled".into() };
    let summary = pair(|result, _| {
        for key in ["device.in_use", "wgpu.reserved", "process.resident"] {
            result.peaks.insert(key.into(), absent());
        }
    });
    let page = markdown(&summary).unwrap();
    for key in ["device.in_use", "wgpu.reserved"] {
        assert!(page.contains(&format!("| {key} | a CPU has no such counter")), "{page}");
    }
    assert!(page.contains("| process.resident | it was never sampled"), "{page}");
}

#[test]
fn a_baseline_that_failed_says_how_and_nothing_is_drawn() {
    use crate::record::Outcome;
    let failed = |arm: &str, outcome| fixture::record(data::SetId::Mnist, arm, 1, outcome, None);
    let records = [
        failed("baseline", Outcome::Failed { message: "no such file".into() }),
        failed("subset", Outcome::Interrupted),
    ];
    let summary = crate::stats::summarise(&records, &fixture::host(), &toml::Table::new(), Vec::new());
    assert!(row(&summary, "baseline").contains("no run completed: failed: no such file"));
    // What was interrupted has not failed.
    let cut = row(&summary, "subset");
    assert!(cut.contains("not compared") && cut.contains("interrupted") && !cut.contains("failed"), "{cut}");
    let figure = svg(&summary).unwrap();
    assert!(
        figure.contains("nothing was compared") && !figure.contains("no counter") && !figure.contains("left is less")
    );
}

#[test]
fn a_narrow_terminal_gets_whole_words_and_numbers() {
    let summary = fixture::summary();
    for width in [60u16, 80, 100, 120, 200] {
        let text = terminal(&summary, width);
        for whole in ["-39.0 % ±0.0", "unsupported", "gradient-accumulation"] {
            assert!(text.contains(whole), "{whole} is cut at {width} columns:\n{text}");
        }
        for line in text.lines().take_while(|line| !line.starts_with("mnist: `")).filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
        }
    }
}
