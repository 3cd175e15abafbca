//! The page in a real browser: a headless Chromium picks a model, draws, reads, opens and saves files. Without one on the
//! PATH each claim is skipped with a sentence.

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "browser/http.rs"]
mod http;

use chromium::Browser;
use http::{array, post, relative_l2, thinned};
use lamo::data::formats::{self, ArrayFile, Named};
use lamo_serve::{Limits, Server, Settings, Source};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const DESKTOP: [u32; 2] = [1280, 900];
const PHONE: [u32; 2] = [360, 740];
const SHIFT: u32 = 8;
/// Cells along a side of a drawing, points along a side of the model, and their ratio.
const CELLS: usize = 421;
const SIDE: usize = 85;
const STRIDE: usize = 5;
/// The error is there, and belongs to what is drawn.
const SETTLED: &str = "document.querySelector('#error')?.dataset.value && !document.querySelector('.darcy.stale') && document.querySelector('#error').dataset.value";

/// A browser and a server; one claim at a time, since each takes all cores.
struct Bench {
    browser: Browser,
    server: Server,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn start(models: &[&str], size: [u32; 2], token: Option<&str>) -> Option<Bench> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let browser = Browser::start(size)?;
        let sources: Vec<Source> = models.iter().map(|model| Source::parse(model).unwrap()).collect();
        let limits = Limits { time: Duration::from_secs(300), ..Limits::default() }; // a loaded machine is slow
        let settings = Settings { token: token.map(str::to_owned), limits, ..Settings::local() };
        let server = Server::start(&sources, settings).unwrap();
        Some(Bench { browser, server, _alone: alone })
    }

    fn address(&self) -> String {
        format!("http://{}/", self.server.address())
    }

    fn open(&mut self, model: &str) {
        let address = format!("{}#{model}", self.address());
        self.browser.open(&address);
        self.browser.wait(&format!("document.querySelector('nav [aria-current]')?.textContent.startsWith({model:?})"));
    }

    /// The page asked no other host, and the console is empty.
    fn end(self) {
        let (own, complaints) = (self.address(), self.browser.complaints());
        let requests = self.browser.requests();
        assert!(!requests.is_empty());
        let foreign: Vec<&String> = requests.iter().filter(|url| !url.starts_with(&own)).collect();
        assert!(foreign.is_empty(), "requests to other hosts: {foreign:?}");
        assert!(complaints.is_empty(), "the console says {complaints:?}");
    }
}

/// The number under the label, as a number.
fn shown_error(browser: &mut Browser) -> f64 {
    browser.wait(SETTLED).as_str().unwrap().parse().unwrap()
}

#[test]
fn the_pressure_follows_the_drawing_and_its_error_is_that_of_the_api() {
    let Some(mut bench) = Bench::start(&["darcy"], DESKTOP, None) else { return };
    bench.open("darcy");
    let before = shown_error(&mut bench.browser);
    let [left, top, width, height] = bench.browser.place(".paper canvas");
    let along = |step: usize| {
        let share = step as f64 / 30.0;
        [left + width * (0.1 + 0.8 * share), top + height * (0.5 + 0.35 * (6.0 * share).sin())]
    };
    bench.browser.drag(&(0..=30).map(along).collect::<Vec<_>>());
    let after = shown_error(&mut bench.browser);
    assert!(before != after && after < 0.1, "the error was {before} and is {after}");

    let drawing = bench.browser.download("[data-save=drawing]", "darcy-permeability.npy");
    let permeability = array(&drawing);
    assert_eq!(permeability.shape, [CELLS, CELLS]);
    let values = permeability.values.into_f32();
    assert!(values.iter().all(|value| [3.0, 12.0].contains(value)));
    let middle = |share: f64| (share * CELLS as f64) as usize;
    let on_the_stroke = middle(0.5 + 0.35 * 3.0f64.sin()) * CELLS + middle(0.5);
    assert_eq!(values[on_the_stroke], 12.0);

    let given = npy(&[SIDE, SIDE], &thinned(&values, CELLS, STRIDE));
    let address = bench.server.address();
    let prediction = array(&post(address, "/v1/models/darcy/predict", &given)).values.into_f32();
    let truth = array(&post(address, "/v1/models/darcy/solve", &drawing)).values.into_f32();
    let error = relative_l2(&prediction, &truth);
    assert!((after - error).abs() < 1e-9 * error, "the page says {after}, the API {error}");
    let text = bench.browser.evaluate("document.querySelector('#error').textContent");
    let text: f64 = text.as_str().unwrap().parse().unwrap();
    assert!((text - error).abs() <= 5e-3 * error, "three digits: {text} of {error}");
    let time = bench.browser.evaluate("document.querySelector('#prediction-time').textContent");
    assert!(time.as_str().unwrap().ends_with(" ms"), "{time}");

    let saved = array(&bench.browser.download("[data-save=prediction]", "darcy-pressure.npy"));
    assert_eq!((saved.shape.as_slice(), saved.values.into_f32()), (&[SIDE, SIDE][..], prediction));
    bench.end();
}

#[test]
fn a_permeability_from_a_file_is_drawn_and_one_of_another_size_is_refused_in_a_sentence() {
    let Some(mut bench) = Bench::start(&["darcy"], DESKTOP, None) else { return };
    bench.open("darcy");
    shown_error(&mut bench.browser);
    let folder = bench.browser.folder().to_owned();
    let halves: Vec<f32> = (0..SIDE * SIDE).map(|point| if point % SIDE < SIDE / 2 { 3.0 } else { 12.0 }).collect();
    std::fs::write(folder.join("halves.npy"), npy(&[SIDE, SIDE], &halves)).unwrap();
    std::fs::write(folder.join("small.npy"), npy(&[4, 6], &[3.0; 24])).unwrap();
    std::fs::write(folder.join("text.npy"), b"no array").unwrap();
    bench.browser.choose("#permeability-file", &folder.join("halves.npy"));
    bench.browser.wait("document.querySelector('.darcy.stale') !== null");
    let shown = shown_error(&mut bench.browser);
    let drawn = array(&bench.browser.download("[data-save=drawing]", "darcy-permeability.npy"));
    assert_eq!(thinned(&drawn.values.into_f32(), CELLS, STRIDE), halves);

    let (address, given) = (bench.server.address(), npy(&[SIDE, SIDE], &halves));
    let [prediction, truth] = ["predict", "solve"]
        .map(|route| array(&post(address, &format!("/v1/models/darcy/{route}"), &given)).values.into_f32());
    let error = relative_l2(&prediction, &truth); // both repeat the value of the nearest point
    assert!((shown - error).abs() < 1e-9 * error, "the page says {shown}, the API {error}");

    for (file, told) in
        [("small.npy", "expected 85 x 85 or 421 x 421 values, found 4 x 6"), ("text.npy", "expected an npy array")]
    {
        bench.browser.choose("#permeability-file", &folder.join(file));
        let alarm = bench.browser.wait("document.querySelector('#alarm:not([hidden])')?.textContent");
        assert!(alarm.as_str().unwrap().contains(told), "{alarm}");
        bench.browser.evaluate("document.querySelector('#alarm').hidden = true");
    }
    bench.end();
}

#[test]
fn the_keyboard_alone_picks_a_model_paints_and_unfolds_the_receipt() {
    let Some(mut bench) = Bench::start(&["other=darcy", "darcy"], DESKTOP, None) else { return };
    bench.open("other");
    shown_error(&mut bench.browser);
    let active = "document.activeElement.matches";
    let reach = |browser: &mut Browser, selector: &str| {
        let found = (0..60).any(|_| {
            browser.press("Tab", 0);
            browser.evaluate(&format!("{active}({selector:?})")) == json!(true)
        });
        assert!(found, "Tab does not reach {selector}");
    };
    reach(&mut bench.browser, "nav a[href='#darcy']");
    bench.browser.press("Enter", 0);
    bench.browser.wait("document.querySelector('h1')?.textContent === 'darcy'");
    let before = shown_error(&mut bench.browser);
    reach(&mut bench.browser, ".paper");
    let other = bench.browser.evaluate("document.querySelector('input[name=phase]:checked').value");
    bench.browser.press("x", 0);
    assert_ne!(other, bench.browser.evaluate("document.querySelector('input[name=phase]:checked').value"));
    bench.browser.down(" ", 0);
    (0..4).for_each(|_| bench.browser.press("ArrowRight", SHIFT));
    bench.browser.up(" ");
    let readout = bench.browser.evaluate("document.querySelector('.readout').textContent");
    assert!(readout.as_str().unwrap().starts_with("row 42, column 74 \u{b7} permeability 3"), "{readout}");
    let after = shown_error(&mut bench.browser);
    assert_ne!(before, after);
    let told = bench.browser.wait("document.querySelector('#live').textContent");
    assert!(told.as_str().unwrap().starts_with("Relative L2 error 0.0"), "{told}");
    bench.browser.press("z", 2); // Ctrl
    let undone = shown_error(&mut bench.browser);
    assert!((undone - before).abs() < 1e-9, "undone: {undone}, before: {before}");
    reach(&mut bench.browser, "#receipt > summary");
    bench.browser.press("Enter", 0);
    let receipt = bench.browser.wait("document.querySelector('#receipt[open]')?.innerText");
    assert!(receipt.as_str().unwrap().contains("0.00322"), "{receipt}");
    bench.end();
}

#[test]
fn a_phone_scrolls_down_and_never_sideways_by_day_and_night() {
    let cloud = cloud_model();
    let Some(mut bench) = Bench::start(&["darcy", &cloud], PHONE, None) else { return };
    bench.browser.resize(PHONE, true);
    for scheme in ["light", "dark"] {
        bench.browser.prefer(scheme);
        for model in ["darcy", "cloud"] {
            bench.open(model);
            bench.browser.wait("document.querySelector('#more details') !== null");
            bench.browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)");
            let widths = bench.browser.evaluate("[document.documentElement.scrollWidth, innerWidth]");
            assert_eq!(widths, json!([PHONE[0], PHONE[0]]), "{model}, {scheme}");
        }
        let paper = bench.browser.evaluate("getComputedStyle(document.body).backgroundColor");
        assert_eq!(paper, json!(if scheme == "dark" { "rgb(20, 22, 26)" } else { "rgb(251, 250, 248)" }));
    }
    bench.end();
}

#[test]
fn every_field_has_a_label_and_every_picture_a_name() {
    let Some(mut bench) = Bench::start(&["darcy"], DESKTOP, None) else { return };
    bench.open("darcy");
    shown_error(&mut bench.browser);
    let script = "[...document.querySelectorAll('main input, main select, main button, main output, main canvas[role], main [role=application]')]
        .filter(part => !(part.labels?.length || part.ariaLabel || part.textContent.trim())).map(part => part.outerHTML)";
    let nameless = bench.browser.evaluate(script);
    assert_eq!(nameless, json!([]));
    let order = bench.browser.evaluate("[...document.querySelectorAll('h1, h2')].map(part => part.localName)[0]");
    assert_eq!(order, json!("h1"));
    bench.end();
}

#[test]
fn a_token_is_asked_for_once_and_a_wrong_one_is_refused() {
    let Some(mut bench) = Bench::start(&["darcy"], DESKTOP, Some("secret")) else { return };
    let address = bench.address();
    bench.browser.open(&address);
    bench.browser.wait("document.querySelector('#token').open");
    for (token, refused) in [("wrong", true), ("secret", false)] {
        bench.browser.call("Input.insertText", json!({ "text": token }));
        bench.browser.press("Enter", 0);
        match refused {
            true => bench
                .browser
                .wait("document.querySelector('#token').open && !document.querySelector('.refused').hidden"),
            false => bench.browser.wait("!document.querySelector('#token').open"),
        };
    }
    shown_error(&mut bench.browser);
    bench.browser.open(&address);
    shown_error(&mut bench.browser);
    let refusals = bench.browser.complaints();
    assert!(refusals.len() == 2 && refusals.iter().all(|text| text.contains("401")), "{refusals:?}");
}

#[test]
fn points_from_a_file_are_shown_moved_and_saved() {
    let cloud = cloud_model();
    let Some(mut bench) = Bench::start(&[&cloud], DESKTOP, None) else { return };
    bench.open("cloud");
    let card: Value = bench.browser.evaluate("fetch('v1/models/cloud').then(answer => answer.json())");
    let file = bench.browser.folder().join("points.npz");
    let given = cloud_input(&card);
    std::fs::write(&file, &given).unwrap();
    bench.browser.wait("document.querySelector('#file') !== null");
    bench.browser.choose("#file", &file);
    let drawn = "document.querySelector('.maps canvas')?.toDataURL()";
    let before = bench.browser.wait(&format!("document.querySelector('.maps canvas')?.width > 10 && {drawn}"));
    bench.browser.click(".maps .view");
    let [left, top, width, height] = bench.browser.place(".maps .view");
    bench.browser.drag(&[[left + width / 2.0, top + height / 2.0], [left + width / 3.0, top + height / 3.0]]);
    bench.browser.wait(&format!("{drawn} !== {before}"));
    let saved = bench.browser.download("[data-kind=npz]", "points-prediction.npz");
    assert_eq!(saved, post(bench.server.address(), "/v1/models/cloud/predict", &given));
    let mesh = bench.browser.download("[data-kind=vtu]", "points-prediction.vtu");
    let text = String::from_utf8(mesh).unwrap();
    assert!(text.contains("_predicted\"") && text.trim_end().ends_with("</VTKFile>"), "{}", &text[..400]);
    bench.end();
}

#[test]
fn arrays_of_the_page_and_of_the_library_are_the_same() {
    let Some(mut bench) = Bench::start(&["darcy"], DESKTOP, None) else { return };
    bench.open("darcy");
    let arrays = [
        Named { name: "plane".into(), shape: vec![2, 3], values: vec![1.0, -2.5, 3.0e-7, 4.0, 5.0, 6.0e20] },
        Named { name: "number".into(), shape: vec![], values: vec![7.0] },
        Named { name: "none".into(), shape: vec![4, 0], values: vec![] },
    ];
    let sent = formats::encode("a.npz".as_ref(), &arrays).unwrap();
    let script = format!(
        "import('./npy.js').then(async npy => {{ const arrays = await npy.readNpz(Uint8Array.from({}));
            const plain = [...arrays].map(([name, {{ shape, values }}]) => [name, shape, Array.from(values)]);
            return [plain, Array.from(npy.writeNpz(arrays))]; }})",
        json!(sent)
    );
    let answer = bench.browser.evaluate(&script);
    let expected: Vec<Value> = arrays.iter().map(|array| json!([array.name, array.shape, array.values])).collect();
    for (found, expected) in answer[0].as_array().unwrap().iter().zip(&expected) {
        assert_eq!((&found[0], &found[1]), (&expected[0], &expected[1]));
        let values = |array: &Value| {
            array[2].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect::<Vec<_>>()
        };
        assert_eq!(values(found), values(expected));
    }
    let back: Vec<u8> = serde_json::from_value(answer[1].clone()).unwrap();
    let file = ArrayFile::in_memory("the page", back).unwrap();
    for array in &arrays {
        let read = file.read(Some(&array.name)).unwrap();
        assert_eq!((read.shape, read.values.into_f32()), (array.shape.clone(), array.values.clone()), "{}", array.name);
    }
    let checks = include_str!("browser/arrays.js");
    let failed = bench.browser.evaluate(checks);
    assert_eq!(failed, json!([]), "checks of npy.js that fail");
    bench.end();
}

/// A small model of a cloud of points.
fn cloud_model() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lamo/tests/v0_1/models/cloud");
    format!("cloud={}", folder.display())
}

/// Points on a spiral in the plane, and smooth fields on them, for a card.
fn cloud_input(card: &Value) -> Vec<u8> {
    let points = card["grid"]["points"].as_u64().unwrap() as usize;
    let at = |point: usize, axis: usize| {
        let (radius, turn) = ((point as f32 + 1.0) / points as f32, 2.4 * point as f32);
        radius * [turn.cos(), turn.sin()][axis]
    };
    let field = |name: &str, channels: usize, shape: Vec<usize>| {
        let values = (0..points * channels).map(|place| at(place / channels, place % channels % 2)).collect();
        Named { name: name.into(), shape, values }
    };
    let mut arrays = vec![field("positions", 2, vec![points, 2])];
    for input in card["inputs"].as_array().unwrap() {
        let shape: Vec<usize> = serde_json::from_value(input["shape"].clone()).unwrap();
        let name = input["name"].as_str().unwrap();
        match shape.first() == Some(&points) {
            true => arrays.push(field(name, shape.iter().product::<usize>() / points, shape)),
            false => arrays.push(Named { name: name.into(), values: vec![0.5; shape.iter().product()], shape }),
        }
    }
    formats::encode("points.npz".as_ref(), &arrays).unwrap()
}

fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let named = Named { name: "values".into(), shape: shape.to_vec(), values: values.to_vec() };
    formats::encode("values.npy".as_ref(), &[named]).unwrap()
}
