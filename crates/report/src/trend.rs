//! A page of figures of many runs over time: one plot per metric of a load, with sentences about its changes
//! of level.
//!
//! A pure function of its input; it does not search for changes itself. Runs are plotted at equal distances,
//! whatever the time between them; the sentences contain the dates.

use crate::plot;
use crate::text::clean;
use serde::Serialize;

/// A page of trends.
#[derive(Debug, Clone, Serialize)]
pub struct TrendPage {
    /// Subject of the page.
    pub title: String,
    /// Sentences below the title.
    pub sentences: Vec<String>,
    /// Loads, each with its metrics.
    pub loads: Vec<TrendLoad>,
}

/// A load that was run several times.
#[derive(Debug, Clone, Serialize)]
pub struct TrendLoad {
    /// The job and its operation.
    pub name: String,
    /// Description of its I/O.
    pub load: String,
    /// Its metrics.
    pub metrics: Vec<TrendMetric>,
}

/// A metric over the runs.
#[derive(Debug, Clone, Serialize)]
pub struct TrendMetric {
    /// Title of the plot: `IOPS`, `lat p99, µs`.
    pub title: String,
    /// One value per run, oldest first.
    pub values: Vec<f64>,
    /// Indexes of the first values of new levels, ascending.
    pub changes: Vec<usize>,
    /// Sentences about the metric.
    pub sentences: Vec<String>,
}

const TEMPLATE: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>{{ page.title }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
<h1>{{ page.title }}</h1>
{% for sentence in page.sentences %}<p>{{ sentence }}</p>
{% endfor %}
{% for load in page.loads %}
<section class=\"phase\">
<header><h3>{{ load.name }}</h3><p>{{ load.load }}</p></header>
<div class=\"plots\">{% for metric in load.metrics %}<div>{{ metric.plot|safe }}</div>{% endfor %}</div>
<ul>{% for metric in load.metrics %}{% for sentence in metric.sentences %}<li>{{ sentence }}</li>{% endfor %}{% endfor %}</ul>
</section>
{% endfor %}
</body>
</html>
";

/// Renders the page as self-contained HTML.
pub fn trend_html(page: &TrendPage) -> String {
    let loads: Vec<_> = page
        .loads
        .iter()
        .map(|load| {
            let metrics: Vec<_> = load
                .metrics
                .iter()
                .map(|metric| {
                    let plot = plot::trend(&metric.title, &metric.values, &metric.changes).unwrap_or_default();
                    minijinja::context! { plot, sentences => cleaned(&metric.sentences) }
                })
                .collect();
            minijinja::context! { name => clean(&load.name), load => clean(&load.load), metrics }
        })
        .collect();
    let page = minijinja::context! { title => clean(&page.title), sentences => cleaned(&page.sentences), loads };
    crate::html::render("trend.html", TEMPLATE, &minijinja::context! { page, style => crate::html::style() })
}

fn cleaned(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| clean(text).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_every_load_and_escapes_names() {
        let metric = |values: Vec<f64>, changes| TrendMetric {
            title: "IOPS".into(),
            values,
            changes,
            sentences: vec!["IOPS fell.".into()],
        };
        let page = TrendPage {
            title: "trend of <script>alert(1)</script>".into(),
            sentences: vec!["12 runs".into()],
            loads: vec![TrendLoad {
                name: "job \u{1b}[2J".into(),
                load: "randread 4k".into(),
                metrics: vec![
                    metric((0..12).map(|n| if n < 6 { 100.0 } else { 50.0 }).collect(), vec![6]),
                    metric(vec![], vec![]),
                ],
            }],
        };
        let html = trend_html(&page);
        assert!(!html.contains("<script") && !html.contains('\u{1b}'), "{html}");
        assert_eq!((html.matches("<svg").count(), html.matches("IOPS fell.").count()), (1, 2));
        // The values and the levels are separate lines.
        assert!(html.contains("runs, level"), "{html}");
    }
}
