//! How figures are counted; their measurement is not tested.

#[path = "../benches/speed/figures.rs"]
mod figures;

use figures::{Report, Sample, Spread};

#[test]
fn quartiles_lie_between_the_values() {
    let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
    let Spread { runs, low, median, high } = spread;
    assert_eq!((runs, low, median, high), (4, 1.75, 2.5, 3.25));
    assert_eq!(Spread::of(&[5.0]).high, 5.0);
}

#[test]
fn ratios_pair_runs_of_both_programs() {
    let sample = |program: &str, values: [f64; 3]| Sample {
        program: program.to_owned(),
        values: values.to_vec(),
    };
    let mut report = Report::default();
    let samples = [sample("ours", [1.0, 10.0, 100.0]), sample("peer", [2.0, 20.0, 200.0])];
    report.add("time", "ms", &samples, "ours", &[("peer", 0.5)]);
    let ratio = report.lines.last().expect("a ratio");
    assert_eq!((ratio.spread.low, ratio.spread.high), (0.5, 0.5));
    assert!(
        report
            .table()
            .contains("| time | ours / peer | 0.500 | 0.500 – 0.500 | x | 3 | ≤ 0.500: met |")
    );
}

#[test]
fn figure_above_its_bound_is_missed() {
    let sample = |value: f64| Sample { program: "ours".to_owned(), values: vec![value] };
    let mut report = Report::default();
    report.add("memory", "MiB", &[sample(8.0)], "ours", &[]);
    report.at_most("ours", 9.0);
    report.add("size", "MB", &[sample(8.0)], "ours", &[]);
    report.at_most("ours", 7.0);
    let table = report.table();
    assert!(table.contains("≤ 9.00: met"), "{table}");
    assert!(table.contains("≤ 7.00: missed"), "{table}");
}
