//! What a store in a bucket promises, by a server that speaks S3.

#[allow(dead_code)]
#[path = "../../tests/common/moto.rs"]
mod moto;

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::thread;

use object_store::aws::AmazonS3Builder;
use ringmark_collector::store::objects::ObjectStore;
use ringmark_decoder::store::ObjectSource;
use ringmark_format::stream::ack_level;

use self::moto::{Moto, settings};
use super::Bucket;

/// More than a page of a listing has.
const MANY: usize = 1100;

/// A store in the bucket of a server.
fn bucket(moto: &Moto, prefix: &str) -> Bucket {
    let settings = settings(&moto.address()).into_iter();
    let builder = settings.fold(AmazonS3Builder::new(), |builder, (name, value)| {
        let key = name.to_lowercase().parse().expect("a setting");
        builder.with_config(key, value)
    });
    Bucket::with(builder, &format!("s3://bucket/{prefix}")).expect("a bucket")
}

#[test]
fn objects_are_put_again_read_and_deleted() {
    let Some(moto) = Moto::start() else { return };
    let bucket = bucket(&moto, "a/b");
    for _ in 0..2 {
        bucket.put("raw/v2/x.rms", b"0123456789").unwrap();
    }
    bucket.put("raw/v2/empty.rms", b"").unwrap();
    let get = |name, range| ObjectStore::get(&bucket, name, range);
    assert_eq!(get("raw/v2/x.rms", 2..5).unwrap(), b"234");
    assert_eq!(get("raw/v2/x.rms", 8..99).unwrap(), b"89");
    assert_eq!(get("raw/v2/x.rms", 10..12).unwrap(), b"");
    assert_eq!(get("raw/v2/x.rms", 99..120).unwrap(), b"");
    assert_eq!(get("raw/v2/x.rms", 3..3).unwrap(), b"");
    assert_eq!(get("raw/v2/empty.rms", 0..16).unwrap(), b"");
    let mut whole = String::new();
    let mut file = bucket.open("raw/v2/x.rms").unwrap();
    let _ = file.read_to_string(&mut whole).unwrap();
    assert_eq!(whole, "0123456789");
    assert_eq!(bucket.level(), ack_level::OBJECT);

    bucket.delete("raw/v2/x.rms").unwrap();
    for range in [0..1, 0..0] {
        let error = get("raw/v2/x.rms", range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let error = bucket.open("raw/v2/x.rms").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn one_of_many_that_create_an_object_does() {
    let Some(moto) = Moto::start() else { return };
    for round in 0..5 {
        let name = format!("id-{round}.json");
        let buckets: Vec<_> = (0..8).map(|_| Arc::new(bucket(&moto, "race"))).collect();
        let create = |(number, bucket): (usize, &Arc<Bucket>)| {
            let (bucket, name) = (bucket.clone(), name.clone());
            thread::spawn(move || bucket.create(&name, format!("by {number}").as_bytes()))
        };
        let creating: Vec<_> = buckets.iter().enumerate().map(create).collect();
        creating
            .into_iter()
            .for_each(|one| one.join().unwrap().unwrap());
        let first = ObjectStore::get(&*buckets[0], &name, 0..99).unwrap();
        buckets[1].create(&name, b"later").unwrap();
        for bucket in &buckets {
            assert_eq!(ObjectStore::get(&**bucket, &name, 0..99).unwrap(), first);
        }
    }
}

#[test]
fn all_names_below_a_prefix_are_listed_in_order() {
    let Some(moto) = Moto::start() else { return };
    let bucket = Arc::new(bucket(&moto, "many"));
    let name = |number| format!("raw/v2/{number:012}.rms");
    let put = |part: usize| {
        let bucket = bucket.clone();
        thread::spawn(move || {
            for number in (part..MANY).step_by(8) {
                bucket.put(&name(number), &vec![0; number % 3]).unwrap();
            }
        })
    };
    let putting: Vec<_> = (0..8).map(put).collect();
    putting.into_iter().for_each(|one| one.join().unwrap());
    bucket.put("raw/v22/other.rms", b"").unwrap();
    let listed = ObjectSource::list(&*bucket, "raw/v2").unwrap();
    assert_eq!(listed.len(), MANY);
    for (number, object) in listed.iter().enumerate() {
        assert_eq!(
            (&object.name, object.bytes),
            (&name(number), number as u64 % 3)
        );
    }
    let ends = bucket.ends(&listed, 1);
    assert_eq!(ends.len(), MANY);
    for (end, object) in ends.into_iter().zip(&listed) {
        assert_eq!(end.unwrap(), vec![0; object.bytes.min(1) as usize]);
    }
    assert_eq!(ObjectStore::list(&*bucket, "none").unwrap(), [""; 0]);
}

#[test]
fn a_bucket_that_is_not_there_is_an_error_and_no_empty_store() {
    let Some(moto) = Moto::start() else { return };
    let there = bucket(&moto, "x");
    assert!(ObjectStore::list(&there, "raw/v2").unwrap().is_empty());
    let settings = settings(&moto.address()).into_iter();
    let builder = settings.fold(AmazonS3Builder::new(), |builder, (name, value)| {
        builder.with_config(name.to_lowercase().parse().unwrap(), value)
    });
    let none = Bucket::with(builder, "s3://another/x").unwrap();
    assert!(ObjectStore::list(&none, "raw/v2").is_err());
    assert!(none.put("raw/v2/a", b"1").is_err() && none.create("a", b"1").is_err());
}
