//! Several processes at one set, at every moment: it is made once, all have it, nothing is left. Threads stand in for
//! processes; each opens the lock for itself.

use super::*;
use crate::data::Recipe;
use crate::files::scratch::Folder;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Barrier;

/// What is in a folder, in order.
fn names(folder: &Folder) -> Vec<String> {
    bytes(folder.path()).into_keys().collect()
}

/// Every entry of a folder with its bytes, where it has any.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path()))).collect()
}

fn recipe() -> Recipe {
    Recipe::named("darcy", &["resolution=6"], 1, 3).unwrap()
}

fn make(target: &Path) -> Result<Outcome, Error> {
    recipe().make(target, 1, &|_| ControlFlow::Continue(()))
}

/// What another process does that holds the lock: to the end, or up to the name.
fn come_to_the_end(whole: &Path, partial: &Path) {
    for name in ["permeability.npy", "pressure.npy", MANIFEST] {
        std::fs::copy(whole.join(name), partial.join(name)).unwrap();
    }
    std::fs::remove_file(partial.join(RECIPE)).unwrap();
}

/// A partial folder whose lock is held, as another process leaves it while it works.
fn begun(partial: &Path) -> File {
    std::fs::create_dir_all(partial).unwrap();
    recipe().manifest().write(&partial.join(RECIPE)).unwrap();
    lock::lock(&partial.join(LOCK)).unwrap().unwrap()
}

const A_MOMENT: Duration = Duration::from_millis(200);

#[test]
fn a_set_that_is_finished_while_its_lock_is_waited_for_is_not_begun_again() {
    let folder = Folder::new("finished");
    let (whole, target, partial) = (folder.at("whole"), folder.at("set"), folder.at("set.partial"));
    make(&whole).unwrap();
    let held = begun(&partial);
    let outcome = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| recipe().make(&target, 1, &|_| panic!("no sample is missing")));
        std::thread::sleep(A_MOMENT);
        come_to_the_end(&whole, &partial);
        drop(held);
        waiting.join().unwrap()
    });
    assert!(matches!(outcome, Ok(Outcome::Made(_))), "{outcome:?}"); // it gives the name
    assert_eq!(bytes(&target), bytes(&whole));
    assert_eq!(names(&folder), ["set", "whole"]);
}

#[test]
fn a_set_that_is_named_while_its_lock_is_waited_for_is_there() {
    for renewed in [false, true] {
        let folder = Folder::new(&format!("named-{renewed}"));
        let (whole, target, partial) = (folder.at("whole"), folder.at("set"), folder.at("set.partial"));
        make(&whole).unwrap();
        let held = begun(&partial);
        let outcome = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| make(&target));
            std::thread::sleep(A_MOMENT);
            come_to_the_end(&whole, &partial);
            if !renewed {
                std::fs::remove_file(partial.join(LOCK)).unwrap(); // else a third process has just opened it again
            }
            std::fs::rename(&partial, &target).unwrap();
            drop(held);
            waiting.join().unwrap()
        });
        assert!(matches!(outcome, Ok(Outcome::AlreadyThere(_))), "{outcome:?}");
        assert_eq!(bytes(&target), bytes(&whole));
        assert_eq!(names(&folder), ["set", "whole"]);
    }
}

#[test]
fn a_set_that_is_taken_away_while_its_lock_is_waited_for_is_begun_anew() {
    let folder = Folder::new("discarded");
    let (whole, target, partial) = (folder.at("whole"), folder.at("set"), folder.at("set.partial"));
    make(&whole).unwrap();
    let held = begun(&partial);
    let outcome = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| make(&target));
        std::thread::sleep(A_MOMENT);
        std::fs::remove_dir_all(&partial).unwrap();
        drop(held);
        waiting.join().unwrap()
    });
    assert!(matches!(outcome, Ok(Outcome::Made(_))), "{outcome:?}");
    assert_eq!(bytes(&target), bytes(&whole));
    assert_eq!(names(&folder), ["set", "whole"]);
}

/// Runs as many at once, and expects that all have the set and one of them made it.
fn all_at_once(makers: usize, target: &Path, expected: &BTreeMap<String, Vec<u8>>) {
    let start = Barrier::new(makers);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let maker = || {
            start.wait();
            make(target)
        };
        let threads: Vec<_> = (0..makers).map(|_| scope.spawn(maker)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (made, there): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| matches!(outcome, Ok(Outcome::Made(_))));
    assert_eq!(made.len(), 1, "{outcomes:?}");
    assert!(there.iter().all(|outcome| matches!(outcome, Ok(Outcome::AlreadyThere(_)))), "{outcomes:?}");
    assert_eq!(bytes(target), *expected);
}

#[test]
fn many_at_once_make_a_set_once_and_all_have_it() {
    let folder = Folder::new("many");
    make(&folder.at("whole")).unwrap();
    let expected = bytes(&folder.at("whole"));
    for round in 0..8 {
        all_at_once(4, &folder.at(&format!("set-{round}")), &expected);
    }
    assert_eq!(names(&folder).len(), 9, "nothing is left beside the sets: {:?}", names(&folder));
}

#[test]
fn many_at_once_give_a_finished_set_its_name_once_and_all_have_it() {
    let folder = Folder::new("naming");
    make(&folder.at("set")).unwrap();
    let expected = bytes(&folder.at("set"));
    for _ in 0..30 {
        std::fs::rename(folder.at("set"), folder.at("set.partial")).unwrap();
        all_at_once(4, &folder.at("set"), &expected);
    }
    assert_eq!(names(&folder), ["set"]);
}

#[test]
fn what_a_killed_process_left_half_written_does_not_get_into_the_set() {
    let folder = Folder::new("swept");
    let stop = |_: Progress| ControlFlow::Break(());
    assert!(matches!(recipe().make(&folder.at("set"), 1, &stop), Ok(Outcome::Stopped(_))));
    std::fs::write(folder.at("set.partial/.dataset.toml.0123456789abcdef-7.partial"), "format =").unwrap();
    make(&folder.at("set")).unwrap();
    assert_eq!(
        bytes(&folder.at("set")).into_keys().collect::<Vec<_>>(),
        [MANIFEST, "permeability.npy", "pressure.npy"]
    );
}

/// Makes two of three samples, lets `damage` change the unfinished folder, and makes the rest; what was warned of.
fn resumed_after(name: &str, damage: impl FnOnce(&Path)) -> (Folder, String, usize) {
    let folder = Folder::new(name);
    let stop = |progress: Progress| if progress.made < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    assert!(matches!(recipe().make(&folder.at("set"), 1, &stop), Ok(Outcome::Stopped(_))));
    damage(&folder.at("set.partial"));
    let (warnings, made) = (Mutex::new(String::new()), Mutex::new(0));
    let watch = |progress: Progress| {
        *made.lock().unwrap() = progress.made;
        ControlFlow::Continue(())
    };
    let warn = |text: &str| warnings.lock().unwrap().push_str(text);
    let outcome = recipe().make_and_warn(&folder.at("set"), 1, &watch, &warn);
    assert!(matches!(outcome, Ok(Outcome::Made(_))), "{outcome:?}");
    let (warnings, made) = (warnings.into_inner().unwrap(), *made.lock().unwrap());
    (folder, warnings, made)
}

type Damage = Box<dyn FnOnce(&Path)>;

#[test]
fn samples_that_an_interrupted_attempt_lost_are_made_again_and_said() {
    let whole = Folder::new("whole");
    make(&whole.at("set")).unwrap();
    let cut = |file: &'static str, bytes: u64| {
        move |partial: &Path| File::options().write(true).open(partial.join(file)).unwrap().set_len(bytes).unwrap()
    };
    let row = 4 * 6 * 6; // one sample of `pressure` after a header of 128 bytes
    let damages: [(&str, Damage, &str, usize); 6] = [
        ("nothing", Box::new(|_| {}), "", 1),
        ("empty", Box::new(cut("pressure.npy", 0)), "pressure.npy: cut short or removed; 3 samples made again", 3),
        ("cut", Box::new(cut("pressure.npy", 128 + row + 7)), "cut short or removed; 2 samples made again", 2),
        (
            "gone",
            Box::new(|partial| std::fs::remove_file(partial.join("permeability.npy")).unwrap()),
            "permeability.npy: cut short or removed; 3 samples made again",
            3,
        ),
        (
            "foreign",
            Box::new(|partial| std::fs::write(partial.join("pressure.npy"), "text").unwrap()),
            "pressure.npy",
            3,
        ),
        ("marks", Box::new(cut(PROGRESS, 1)), "progress: expected marks of 3 samples, found 1", 2),
    ];
    for (name, damage, warning, expected) in damages {
        let (folder, warned, made) = resumed_after(name, damage);
        assert!(warned.contains(warning) && warned.is_empty() == warning.is_empty(), "{name}: {warned}");
        assert_eq!((made, bytes(&folder.at("set")) == bytes(&whole.at("set"))), (expected, true), "{name}");
    }
}

#[test]
#[cfg(unix)]
fn a_named_pipe_in_an_unfinished_set_is_refused_and_not_waited_for() {
    let stop = |_: Progress| ControlFlow::Break(());
    for name in ["pressure.npy", PROGRESS, LOCK, RECIPE] {
        let folder = Folder::new("pipe");
        assert!(matches!(recipe().make(&folder.at("set"), 1, &stop), Ok(Outcome::Stopped(_))));
        let path = folder.at("set.partial").join(name);
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let told = make(&folder.at("set")).unwrap_err().to_string();
        assert!(told.contains(name) && told.contains("expected a regular file, found a named pipe"), "{told}");
    }
}
