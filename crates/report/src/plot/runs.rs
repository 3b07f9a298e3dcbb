//! A metric over the runs of a device: a point per run at its date, hollow if the run was disturbed, and its levels.

use super::axis::Axis;
use super::{Curve, Drawing, Hover, Look, Marker};

/// The value of a run.
pub(crate) struct RunPoint {
    pub(crate) at_unix_s: u64,
    pub(crate) value: f64,
    pub(crate) is_hollow: bool,
    /// What is shown under the pointer.
    pub(crate) text: String,
}

/// Draws the plot. `changes` are the indexes at which a new level begins; each level is drawn as the line of its median.
/// `None` with fewer than two values.
pub(crate) fn trend(title: &str, points: &[RunPoint], changes: &[usize]) -> Option<String> {
    let max = points.iter().map(|point| point.value).fold(0.0, f64::max);
    let (first, last) = (points.first()?.at_unix_s, points.iter().map(|point| point.at_unix_s).max()?);
    if points.len() < 2 || max <= 0.0 {
        return None;
    }
    let at = |index: usize| points.get(index).map_or(0.0, |point| point.at_unix_s as f64);
    let mut level = Vec::new();
    let edges: Vec<usize> = [0].into_iter().chain(changes.iter().copied()).chain([points.len()]).collect();
    for edge in edges.windows(2) {
        let mut part: Vec<f64> = points.get(edge[0]..edge[1])?.iter().map(|point| point.value).collect();
        part.sort_by(f64::total_cmp);
        let median = *part.get(part.len() / 2)?;
        level.extend([(at(edge[0]), Some(median)), (at(edge[1] - 1), Some(median)), (at(edge[1] - 1), None)]);
    }
    let line = points.iter().map(|point| (point.at_unix_s as f64, Some(point.value)));
    let curves = [
        Curve::new("runs", Look { color: 0, dash: 0 }, line).thin(),
        Curve::new("level", Look { color: 1, dash: 1 }, level),
    ];
    let markers: Vec<Marker> = points
        .iter()
        .map(|point| {
            let (x, y, title) = (point.at_unix_s as f64, point.value, point.text.clone());
            match point.is_hollow {
                true => Marker::Ring { x, y, color: 0, title },
                false => Marker::Dot { x, y, color: 0, title },
            }
        })
        .collect();
    let hover: Vec<Hover> =
        points.iter().map(|point| Hover { x: point.at_unix_s as f64, text: point.text.clone() }).collect();
    let (x, y) = (Axis::of_dates(first, last), Axis::from_zero(max));
    Some(Drawing { title, curves: &curves, markers: &markers, shades: &[], hover: &hover, x: &x, y: &y }.draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_runs_are_hollow_and_runs_stand_at_their_dates() {
        let points: Vec<RunPoint> = (0..4u64)
            .map(|i| RunPoint {
                at_unix_s: 1_795_206_512 + i * i * 86_400,
                value: 100.0 + i as f64,
                is_hollow: i == 2,
                text: format!("run {i}"),
            })
            .collect();
        let svg = trend("IOPS", &points, &[2]).unwrap();
        assert_eq!((svg.matches("class=\"ring").count(), svg.matches("<circle class=\"f0\"").count()), (1, 3));
        assert!(svg.contains("2026-11-20") && svg.contains("2026-11-29"), "{svg}");
        // The third run is four days after the first, of nine.
        let places: Vec<f64> = svg
            .split("data-x=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .split(' ')
            .map(|x| x.parse().unwrap())
            .collect();
        let share = (places[2] - places[0]) / (places[3] - places[0]);
        assert!((share - 4.0 / 9.0).abs() < 0.01, "{share}");
        assert!(trend("IOPS", &points[..1], &[]).is_none());
    }
}
