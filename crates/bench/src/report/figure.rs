//! Memory saved and time cost by policy, as a drawing.
//!
//! For each data set one row of two panels: the change of peak memory and the change of the time for an image. Bars to
//! the left are less (better), bars to the right more (worse); the colours are those of Okabe and Ito, which colour-blind
//! people can tell apart, and the side says the same.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ReportError;
use super::tables;
use crate::stats::{ArmSummary, Change, SetSummary, Summary};

const LESS: RGBColor = RGBColor(0, 114, 178);
const MORE: RGBColor = RGBColor(213, 94, 0);
const TEXT: RGBColor = RGBColor(27, 31, 36);
const QUIET: RGBColor = RGBColor(87, 96, 106);
const GRID: RGBColor = RGBColor(225, 229, 233);

const WIDTH: u32 = 1120;
const NAMES: i32 = 200;
const ROW: i32 = 30;
const HEAD: i32 = 62;
const AXIS: i32 = 56;
const TITLE: i32 = 56;
const FOOT: i32 = 34;
const GAP: i32 = 24;
/// Between the labels of an axis and the next data set.
const BELOW: i32 = 20;

/// Draws `summary`.
///
/// # Errors
///
/// [`ReportError::Figure`].
pub fn svg(summary: &Summary) -> Result<String, ReportError> {
    let height = TITLE + FOOT + summary.sets.iter().map(set_height).sum::<i32>();
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height.unsigned_abs())).into_drawing_area();
        draw(summary, &root).map_err(|error| ReportError::Figure(error.to_string()))?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn set_height(set: &SetSummary) -> i32 {
    HEAD + AXIS + ROW * rows(set)
}

fn rows(set: &SetSummary) -> i32 {
    i32::try_from(set.arms.len().max(1)).unwrap_or(1)
}

fn draw(summary: &Summary, root: &Area<'_>) -> Drawn {
    root.fill(&WHITE)?;
    let device = &summary.host.found.device;
    put(root, "What each memory policy saves and costs", (16, 12), 20, &TEXT, HPos::Left)?;
    let facts = format!("{} · {} · {} · Burn {}", device.name, device.backend, device.profile, device.burn);
    put(root, &facts, (16, 36), 13, &QUIET, HPos::Left)?;
    let mut top = TITLE;
    for set in &summary.sets {
        draw_set(set, root, top)?;
        top += set_height(set);
    }
    let foot = format!("Bars: mean change against the baseline. Whiskers: {}.", summary.interval_method);
    put(root, &foot, (16, top + 8), 12, &QUIET, HPos::Left)?;
    root.present()?;
    Ok(())
}

fn draw_set(set: &SetSummary, root: &Area<'_>, top: i32) -> Drawn {
    let left = NAMES;
    let middle = left + (WIDTH.cast_signed() - NAMES) / 2;
    let memory_title = set.primary_counter.as_ref().map_or("memory".to_owned(), |counter| format!("peak {counter}"));
    put(root, &set.set.to_string(), (16, top + 18), 17, &TEXT, HPos::Left)?;
    for (index, arm) in set.arms.iter().enumerate() {
        let y = top + HEAD + ROW * i32::try_from(index)? + ROW / 2;
        for (line, name) in wrapped(&arm.arm).iter().enumerate() {
            let y = y - 7 * (i32::try_from(wrapped(&arm.arm).len())? - 1) + 14 * i32::try_from(line)?;
            middle_text(root, name, (NAMES - 10, y), 13, &TEXT, HPos::Right)?;
        }
    }
    let memory = |arm: &ArmSummary| tables::primary(set, arm).and_then(|memory| memory.change);
    let panel = |x: i32| root.clone().shrink((x, top), ((WIDTH.cast_signed() - NAMES) / 2 - GAP, set_height(set)));
    draw_panel(set, &memory_title, &memory, &panel(left))?;
    draw_panel(set, "time per image, waiting included", &|arm| arm.time, &panel(middle))
}

/// A combination's name on several lines.
fn wrapped(name: &str) -> Vec<&str> {
    if name.contains('+') { vec!["all together", "(see the tables)"] } else { vec![name] }
}

fn draw_panel(
    set: &SetSummary,
    title: &str,
    change: &dyn Fn(&ArmSummary) -> Option<Change>,
    panel: &Area<'_>,
) -> Drawn {
    let changes: Vec<Option<Change>> = set.arms.iter().map(change).collect();
    let (least, most) = range(&changes);
    // Room for the numbers beside the bars.
    let room = (most - least) * 0.18;
    let (low, high) = (least - room, most + room);
    let count = f64::from(rows(set));
    // What is narrower has no length when it is drawn, and renderers complain about it.
    let pixel = (high - low) * 0.005;
    // Between a bar and its number.
    let gap = (high - low) * 0.012;
    put(panel, title, (0, 18), 14, &TEXT, HPos::Left)?;
    if changes.iter().flatten().all(|change| change.relative.is_none()) {
        // Axes around nothing would look like a measurement.
        put(panel, "nothing was compared", (0, 38), 12, &QUIET, HPos::Left)?;
        for (index, arm) in set.arms.iter().enumerate() {
            let y = HEAD + ROW * i32::try_from(index)? + ROW / 2;
            middle_text(panel, word(arm), (0, y), 12, &QUIET, HPos::Left)?;
        }
        return Ok(());
    }
    put(
        panel,
        "change against the baseline; left is less (better), right is more (worse)",
        (0, 38),
        12,
        &QUIET,
        HPos::Left,
    )?;
    let mut chart = ChartBuilder::on(panel)
        .margin_top(HEAD)
        .margin_bottom(BELOW)
        .x_label_area_size(AXIS - BELOW)
        .build_cartesian_2d(low..high, count..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(6)
        .x_label_formatter(&|share| {
            if share.abs() < 1e-9 { "0 %".to_owned() } else { format!("{:+.0} %", share * 100.0) }
        })
        .x_label_style(font(12).color(&QUIET))
        .axis_style(QUIET)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .draw()?;
    for (index, arm) in set.arms.iter().enumerate() {
        let y = f64::from(u32::try_from(index)?);
        let change = changes.get(index).copied().flatten();
        let shown = change.and_then(|change| Some((change.relative?, change.relative_interval)));
        let Some((relative, interval)) = shown else {
            let style = font(12).color(&QUIET).pos(Pos::new(HPos::Left, VPos::Center));
            chart.draw_series([Text::new(word(arm).to_owned(), (gap, y + 0.5), style)])?;
            continue;
        };
        let inside = |share: f64| share.clamp(least, most);
        let colour = if relative < 0.0 { LESS } else { MORE };
        if inside(relative).abs() > pixel {
            chart.draw_series([Rectangle::new([(0.0, y + 0.22), (inside(relative), y + 0.78)], colour.filled())])?;
        }
        let mut end = relative;
        if let Some(interval) = interval {
            let ends = (inside(interval.low), inside(interval.high));
            for at in [ends.0, ends.1] {
                chart.draw_series([PathElement::new(vec![(at, y + 0.38), (at, y + 0.62)], TEXT.stroke_width(1))])?;
            }
            if ends.1 - ends.0 > pixel {
                chart.draw_series([PathElement::new(
                    vec![(ends.0, y + 0.5), (ends.1, y + 0.5)],
                    TEXT.stroke_width(1),
                )])?;
            }
            end = if relative < 0.0 { interval.low.min(relative) } else { interval.high.max(relative) };
        }
        let side = if relative < 0.0 { HPos::Right } else { HPos::Left };
        let style = font(12).color(&TEXT).pos(Pos::new(side, VPos::Center));
        let label = super::format::percent(relative);
        let end = if relative < 0.0 { inside(end) - gap } else { inside(end) + gap };
        chart.draw_series([Text::new(label, (end, y + 0.5), style)])?;
    }
    chart.draw_series([PathElement::new(vec![(0.0, 0.0), (0.0, count)], TEXT.stroke_width(1))])?;
    Ok(())
}

/// What stands for a bar that is not there.
fn word(arm: &ArmSummary) -> &'static str {
    let verdict = arm.judgement.as_ref().filter(|_| arm.completed == 0);
    verdict.map_or("not measured", |judgement| judgement.verdict.word())
}

/// The range of the bars and whiskers, with 0; very long ones are cut.
fn range(changes: &[Option<Change>]) -> (f64, f64) {
    const LONGEST: f64 = 2.0;
    const SHORTEST: f64 = 0.1;
    let mut low: f64 = -SHORTEST;
    let mut high: f64 = SHORTEST;
    for change in changes.iter().flatten() {
        let relative = change.relative.unwrap_or_default();
        let ends = change.relative_interval.map_or((relative, relative), |ends| (ends.low, ends.high));
        low = low.min(ends.0.min(relative));
        high = high.max(ends.1.max(relative));
    }
    (low.max(-1.0), high.min(LONGEST))
}

fn put(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, colour: &RGBColor, side: HPos) -> Drawn {
    let style = font(size).color(colour).pos(Pos::new(side, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

fn middle_text(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, colour: &RGBColor, side: HPos) -> Drawn {
    let style = font(size).color(colour).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

/// The font in `pixels`: plotters divides sizes by this number on their way into an SVG.
fn font(pixels: i32) -> FontDesc<'static> {
    ("sans-serif", f64::from(pixels) * 1.24).into_font()
}
