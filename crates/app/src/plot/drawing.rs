//! A drawing for print: polygons, lines, discs, words and images in units of a point, written as SVG, or as PNG by `raster.rs`.
//! Colours are roles, so that one drawing is legible on white paper and on a dark screen.

use super::{Canvas, Rgb};
use crate::report::{base64, escape};
use std::fmt::Write;

/// The role of a colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ink {
    /// Words and axes.
    Text,
    /// Ticks and notes.
    Faint,
    /// Lines behind the curves.
    Grid,
    /// The background.
    Paper,
    /// Our LaMO.
    Orange,
    /// Our Transolver.
    Violet,
    /// Further models, ours.
    Blue,
    Green,
    Brown,
    Rose,
    /// Shades of tables.
    Yellow,
    /// What the paper prints.
    Published,
}

impl Ink {
    /// Its colour on a light and on a dark background.
    pub(crate) fn colour(self, dark: bool) -> Rgb {
        let [light, night] = match self {
            Ink::Text => [0x1f2328, 0xe6e6e6],
            Ink::Faint => [0x57606a, 0xa0a6ae],
            Ink::Grid => [0xd5d9de, 0x3a3f45],
            Ink::Paper => [0xffffff, 0x17191c],
            Ink::Orange => [0xd95f02, 0xff9540],
            Ink::Violet => [0x6a3d9a, 0xb993e6],
            Ink::Blue => [0x0072b2, 0x56b4e9],
            Ink::Green => [0x00795a, 0x35c49b],
            Ink::Brown => [0x8c6d1f, 0xd9b74a],
            Ink::Rose => [0xb8478a, 0xe38ac0],
            Ink::Yellow => [0xf0b400, 0xb08a10],
            Ink::Published => [0x6e7781, 0x9aa4af],
        };
        let [_, red, green, blue] = u32::to_be_bytes(if dark { night } else { light });
        [red, green, blue]
    }

    fn name(self) -> &'static str {
        match self {
            Ink::Text => "text",
            Ink::Faint => "faint",
            Ink::Grid => "grid",
            Ink::Paper => "paper",
            Ink::Orange => "orange",
            Ink::Violet => "violet",
            Ink::Blue => "blue",
            Ink::Green => "green",
            Ink::Brown => "brown",
            Ink::Rose => "rose",
            Ink::Yellow => "yellow",
            Ink::Published => "published",
        }
    }

    /// As a colour of SVG: that of light paper, and a class that a dark screen changes.
    fn css(self, property: &str) -> String {
        let class = format!(" class=\"{}-{}\"", &property[..1], self.name());
        format!("{property}=\"{}\"{class}", self.hexadecimal(false))
    }

    const ROLES: [Ink; 12] = [
        Ink::Text,
        Ink::Faint,
        Ink::Grid,
        Ink::Paper,
        Ink::Orange,
        Ink::Violet,
        Ink::Blue,
        Ink::Green,
        Ink::Brown,
        Ink::Rose,
        Ink::Yellow,
        Ink::Published,
    ];

    /// The variables of all roles for a page, for light and dark screens. Print is light.
    pub(crate) fn variables() -> String {
        let variables = |dark: bool| -> String {
            let variable = |ink: &Ink| format!("--{}:{};", ink.name(), ink.hexadecimal(dark));
            Ink::ROLES.iter().map(variable).collect()
        };
        let (light, dark) = (variables(false), variables(true));
        format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
    }

    /// The classes of drawings on a dark screen.
    pub(crate) fn dark_classes() -> String {
        let rules = |ink: &Ink| {
            let (name, colour) = (ink.name(), ink.hexadecimal(true));
            format!(".f-{name}{{fill:{colour}}}.s-{name}{{stroke:{colour}}}")
        };
        let rules: String = Ink::ROLES.iter().map(rules).collect();
        format!("@media screen and (prefers-color-scheme:dark){{{rules}}}")
    }

    fn hexadecimal(self, dark: bool) -> String {
        let [red, green, blue] = self.colour(dark);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// Which point of a word its position is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A part of a drawing. Coordinates are `[x, y]`, y downwards.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Polygon { corners: Vec<[f64; 2]>, fill: Ink, opacity: f64 },
    Line { points: Vec<[f64; 2]>, ink: Ink, width: f64, dashed: bool },
    Word { at: [f64; 2], text: String, size: f64, ink: Ink, anchor: Anchor, bold: bool },
    Image { at: [f64; 2], size: [f64; 2], picture: Canvas },
}

/// Parts on a rectangle of paper.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(super) items: Vec<Item>,
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, items: Vec::new() }
    }

    pub(crate) fn polygon(&mut self, corners: Vec<[f64; 2]>, fill: Ink, opacity: f64) {
        self.items.push(Item::Polygon { corners, fill, opacity });
    }

    pub(crate) fn rectangle(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], fill: Ink, opacity: f64) {
        let corners = vec![[x, y], [x + width, y], [x + width, y + height], [x, y + height]];
        self.polygon(corners, fill, opacity);
    }

    pub(crate) fn line(&mut self, points: Vec<[f64; 2]>, ink: Ink, width: f64, dashed: bool) {
        self.items.push(Item::Line { points, ink, width, dashed });
    }

    /// A disc as a polygon of 32 corners, which no eye tells from a circle at the size of a mark.
    pub(crate) fn disc(&mut self, [x, y]: [f64; 2], radius: f64, fill: Ink, opacity: f64) {
        self.polygon(circle([x, y], radius), fill, opacity);
    }

    /// The rim of a disc.
    pub(crate) fn ring(&mut self, centre: [f64; 2], radius: f64, ink: Ink, width: f64) {
        let mut points = circle(centre, radius);
        points.extend(points.first().copied());
        self.line(points, ink, width, false);
    }

    pub(crate) fn word(&mut self, at: [f64; 2], text: impl Into<String>, size: f64, ink: Ink, anchor: Anchor) {
        self.items.push(Item::Word { at, text: text.into(), size, ink, anchor, bold: false });
    }

    pub(crate) fn heading(&mut self, at: [f64; 2], text: impl Into<String>, size: f64, anchor: Anchor) {
        self.items.push(Item::Word { at, text: text.into(), size, ink: Ink::Text, anchor, bold: true });
    }

    /// A picture stretched over a rectangle.
    pub(crate) fn image(&mut self, at: [f64; 2], size: [f64; 2], picture: Canvas) {
        self.items.push(Item::Image { at, size, picture });
    }

    /// Another drawing with its upper left corner at a point.
    pub(crate) fn place(&mut self, [left, top]: [f64; 2], other: Drawing) {
        let moved = |[x, y]: [f64; 2]| [x + left, y + top];
        for mut item in other.items {
            match &mut item {
                Item::Polygon { corners, .. } => corners.iter_mut().for_each(|corner| *corner = moved(*corner)),
                Item::Line { points, .. } => points.iter_mut().for_each(|point| *point = moved(*point)),
                Item::Word { at, .. } | Item::Image { at, .. } => *at = moved(*at),
            }
            self.items.push(item);
        }
    }

    /// The drawing as an SVG element that takes its colours from the page.
    pub(crate) fn element(&self, title: &str) -> String {
        let Drawing { width, height, .. } = self;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"Helvetica,Arial,sans-serif\"><title>{}</title>",
            escape(title)
        );
        self.items.iter().for_each(|item| element(&mut out, item));
        out + "</svg>"
    }

    /// The drawing as a file: with its size, its colours and its paper.
    pub(crate) fn svg(&self, title: &str) -> String {
        let Drawing { width, height, .. } = self;
        let (head, body) = (format!("width=\"{width}pt\" height=\"{height}pt\" viewBox"), self.element(title));
        let style = format!("</title><style>{}</style>", Ink::dark_classes());
        let paper = format!("{style}<rect width=\"{width}\" height=\"{height}\" {}/>", Ink::Paper.css("fill"));
        body.replacen("viewBox", &head, 1).replacen("</title>", &paper, 1) + "\n"
    }
}

fn circle([x, y]: [f64; 2], radius: f64) -> Vec<[f64; 2]> {
    let corner = |k: usize| {
        let angle = std::f64::consts::TAU * k as f64 / 32.0;
        [x + radius * angle.cos(), y + radius * angle.sin()]
    };
    (0..32).map(corner).collect()
}

fn element(out: &mut String, item: &Item) {
    let path = |points: &[[f64; 2]]| {
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        points.join(" ")
    };
    let _ = match item {
        Item::Polygon { corners, fill, opacity } => {
            let opacity = if *opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
            write!(out, "<polygon points=\"{}\" {}{opacity}/>", path(corners), fill.css("fill"))
        }
        Item::Line { points, ink, width, dashed } => {
            let dash = if *dashed { " stroke-dasharray=\"3 2\"" } else { "" };
            write!(
                out,
                "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}/>",
                path(points),
                ink.css("stroke")
            )
        }
        Item::Word { at: [x, y], text, size, ink, anchor, bold } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            write!(
                out,
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" {}{weight}>{}</text>",
                ink.css("fill"),
                escape(text)
            )
        }
        Item::Image { at: [x, y], size: [width, height], picture } => {
            let bytes = picture.png(None).unwrap_or_default();
            write!(
                out,
                "<image x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" preserveAspectRatio=\"none\" \
                 href=\"data:image/png;base64,{}\"/>",
                base64(&bytes)
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_one_file_with_its_colours_for_light_and_dark() {
        let mut drawing = Drawing::new(100.0, 50.0);
        drawing.disc([10.0, 10.0], 3.0, Ink::Orange, 0.5);
        drawing.word([20.0, 20.0], "a < b", 9.0, Ink::Text, Anchor::Middle);
        let svg = drawing.svg("errors");
        for part in [
            "width=\"100pt\"",
            "fill=\"#d95f02\" class=\"f-orange\"",
            ".f-orange{fill:#ff9540}",
            "a &lt; b",
            "fill-opacity=\"0.5\"",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert!(!svg.contains("http://") || svg.matches("http").count() == 1, "only the name space is an address");
    }

    #[test]
    fn words_are_legible_on_both_backgrounds() {
        let light =
            |[red, green, blue]: Rgb| 0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue);
        for dark in [false, true] {
            let paper = light(Ink::Paper.colour(dark));
            for ink in [Ink::Text, Ink::Faint, Ink::Orange, Ink::Violet, Ink::Published] {
                assert!((light(ink.colour(dark)) - paper).abs() > 90.0, "{ink:?}, dark {dark}");
            }
        }
    }
}
