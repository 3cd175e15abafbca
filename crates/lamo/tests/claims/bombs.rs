//! Crafted files: a few bytes that promise far more values than they hold, or the same bytes many times. The tests of the
//! library and of the command share this file.

use std::path::Path;

/// A crafted file: its name, and the name of its array.
pub(crate) struct Bomb {
    pub(crate) name: &'static str,
    pub(crate) array: Option<&'static str>,
    pub(crate) bytes: Vec<u8>,
}

/// Rows and columns of the arrays that fit into the file by their header.
pub(crate) const SIDE: usize = 60_000;

/// Every crafted file.
pub(crate) fn bombs() -> Vec<Bomb> {
    let bomb = |name, array, bytes| Bomb { name, array, bytes };
    let huge = "4294967296, 4294967296, 4294967296";
    vec![
        bomb("packed.mat", Some("u"), mat5()),
        bomb("product.npy", None, npy("<f4", huge, &[0; 64])),
        bomb("long.npy", None, npy("<f4", "1, 60000, 60000", &[0; 64])),
        bomb("zip64.npz", Some("u"), zip(&[("u.npy", 0, Some(1 << 42))], &npy("|u1", "4398046511104,", b""))),
        bomb("packed.npz", Some("u"), zip(&[("u.npy", 0, Some(1 << 30))], &npy("<f4", "1, 16384, 16384", b""))),
        bomb("shared.npz", Some("u"), zip(&[("u.npy", 0, None), ("v.npy", 0, None)], &npy("<f4", "1,", &[0; 4]))),
        bomb("extents.h5", Some("a"), patched("two.h5", 824 + 8, &(1_u64 << 40).to_le_bytes())),
        bomb("chunk.h5", Some("chunked"), patched("chunked.h5", 947, &(1_u32 << 31).to_le_bytes())),
        bomb("shared.safetensors", Some("u"), safetensors("[1,2,2]", [[0, 16], [8, 24]])),
        bomb("product.safetensors", Some("u"), safetensors("[4294967296,4294967296,4294967296]", [[0, 16], [16, 32]])),
    ]
}

/// A MAT v5 file of 3.6 MB whose packed variable promises 3.6 GB of bytes, which would be 29 GB of doubles.
fn mat5() -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let (side, values) = (SIDE as u32, (SIDE * SIDE) as u32);
    let mut parts = words(&[6, 8, 6, 0, 5, 12, 1, side, side, 0, 1, 1, u32::from(b'u'), 0]);
    parts.extend(words(&[2, values])); // doubles stored as bytes
    let mut unpacked = words(&[14, parts.len() as u32 + values]);
    unpacked.extend(parts);
    unpacked.resize(3_600_000, 0);
    let mut packed = vec![0x78, 0x01];
    for block in unpacked.chunks(0xffff) {
        let length = block.len() as u16;
        packed.push(0); // a stored block of deflate, not the last
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend(b"\x00\x01IM");
    bytes.extend(words(&[15, packed.len() as u32]));
    bytes.extend(packed);
    bytes
}

fn npy(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), values].concat()
}

/// A zip archive with one stored content. Each member has its name, where its header begins, and how many bytes it promises
/// after the header of the array, where that is more than there are; these sizes have 64 bits.
fn zip(members: &[(&str, u32, Option<u64>)], content: &[u8]) -> Vec<u8> {
    let lies = members.iter().any(|(_, _, promised)| promised.is_some());
    let packed = if lies { stored(content) } else { content.to_vec() };
    let entry = |name: &str, promised: Option<u64>| {
        let extra = promised.map_or(vec![], |promised| {
            let unpacked = promised + content.len() as u64;
            [&[1, 0, 8, 0][..], &unpacked.to_le_bytes()].concat()
        });
        let (size, unpacked) = (packed.len() as u32, promised.map_or(packed.len() as u32, |_| u32::MAX));
        let method = if promised.is_some() { 8_u16 } else { 0 };
        let mut entry = [&[20, 0, 0, 0][..], &method.to_le_bytes(), &[0, 0, 33, 0], &[0; 4]].concat();
        entry.extend([size.to_le_bytes(), unpacked.to_le_bytes()].concat());
        entry.extend((name.len() as u16).to_le_bytes());
        entry.extend((extra.len() as u16).to_le_bytes());
        (entry, extra)
    };
    let (name, _, promised) = members[0];
    let (first, extra) = entry(name, promised);
    let mut file = [b"PK\x03\x04", &first[..], name.as_bytes(), &extra, &packed].concat();
    let start = file.len() as u32;
    for (name, at, promised) in members {
        let (entry, extra) = entry(name, *promised);
        file.extend([b"PK\x01\x02\x14\x00", &entry[..], &[0; 10], &at.to_le_bytes(), name.as_bytes(), &extra].concat());
    }
    let (count, bytes) = ((members.len() as u16).to_le_bytes(), file.len() as u32 - start);
    file.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count].concat());
    file.extend([bytes.to_le_bytes(), start.to_le_bytes()].concat());
    file.extend([0, 0]);
    file
}

/// A stream of deflate that holds the bytes as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16;
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), bytes].concat()
}

/// A file of the corpus with some bytes replaced.
fn patched(name: &str, at: usize, with: &[u8]) -> Vec<u8> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../lamo/tests/arrays/hdf5");
    let mut bytes = std::fs::read(folder.join(name)).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

fn safetensors(shape: &str, offsets: [[u64; 2]; 2]) -> Vec<u8> {
    let entry = |name: &str, offsets: [u64; 2]| {
        format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets:?}}}")
    };
    let header = format!("{{{},{}}}", entry("u", offsets[0]), entry("v", offsets[1]));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 32]].concat()
}
