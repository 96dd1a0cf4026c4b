//! What a store in a bucket promises, by two servers that speak S3 and by one that speaks the protocol of Azure.

#[allow(dead_code)]
#[path = "../../tests/common/azurite.rs"]
mod azurite;
#[allow(dead_code)]
#[path = "../../tests/common/moto.rs"]
mod moto;
#[allow(dead_code)]
#[path = "../../tests/common/s3s.rs"]
mod s3s;

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::thread;

use ringmark_collector::store::objects::ObjectStore;
use ringmark_decoder::store::ObjectSource;
use ringmark_format::stream::ack_level;

use self::azurite::Azurite;
use self::moto::Moto;
use self::s3s::S3s;
use super::Bucket;

/// How a server is met.
trait Server {
    const SCHEME: &str;

    /// More objects than a page of a listing has.
    fn many() -> usize {
        1100
    }

    fn settings(&self) -> Vec<(&'static str, String)>;

    /// A store at an address of the server.
    fn open(&self, rest: &str) -> Bucket {
        let set = self.settings().into_iter();
        let set = set.map(|(name, value)| (name.to_owned(), value));
        let url = format!("{}{rest}", Self::SCHEME);
        Bucket::with(set.collect(), &url).expect("a bucket")
    }

    /// A store in the bucket of the server.
    fn bucket(&self, prefix: &str) -> Bucket {
        self.open(&format!("bucket/{prefix}"))
    }
}

/// The settings of a client of S3 at an address.
fn s3_settings(address: &str) -> Vec<(&'static str, String)> {
    let settings = moto::settings(address).into_iter();
    // No answer is held up here.
    let settings = settings.filter(|(name, _)| *name != "AWS_TIMEOUT");
    settings.collect()
}

impl Server for Moto {
    const SCHEME: &str = "s3://";

    fn settings(&self) -> Vec<(&'static str, String)> {
        s3_settings(&self.address())
    }
}

impl Server for S3s {
    const SCHEME: &str = "s3://";

    fn settings(&self) -> Vec<(&'static str, String)> {
        s3_settings(&self.address())
    }
}

impl Server for Azurite {
    const SCHEME: &str = "az://";

    fn many() -> usize {
        // A page has 5,000: a minute.
        if std::env::var_os("RINGMARK_LONG").is_some() {
            5100
        } else {
            100
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        azurite::settings(&self.address())
    }
}

/// The same tests for each kind of server.
macro_rules! servers {
    ($($name:ident: $($test:ident)*, by $server:expr;)*) => {
        $(mod $name {
            use super::*;
            $(#[test]
            fn $test() {
                if let Some(server) = $server {
                    super::$test(&server);
                }
            })*
        })*
    };
}

servers! {
    s3: objects_are_put_again_read_and_deleted one_of_many_that_create_an_object_does
        all_names_below_a_prefix_are_listed_in_order
        a_bucket_that_is_not_there_is_an_error_and_no_empty_store, by Moto::start();
    // It makes the bucket of an object that is put.
    another_s3: objects_are_put_again_read_and_deleted one_of_many_that_create_an_object_does
        all_names_below_a_prefix_are_listed_in_order, by S3s::start();
    azure: objects_are_put_again_read_and_deleted one_of_many_that_create_an_object_does
        all_names_below_a_prefix_are_listed_in_order
        a_bucket_that_is_not_there_is_an_error_and_no_empty_store, by Azurite::start();
}

fn objects_are_put_again_read_and_deleted<S: Server>(server: &S) {
    let bucket = server.bucket("a/b");
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

fn one_of_many_that_create_an_object_does<S: Server>(server: &S) {
    for round in 0..5 {
        let name = format!("id-{round}.json");
        let buckets: Vec<_> = (0..8).map(|_| Arc::new(server.bucket("race"))).collect();
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

fn all_names_below_a_prefix_are_listed_in_order<S: Server>(server: &S) {
    let many = S::many();
    let bucket = Arc::new(server.bucket("many"));
    let name = |number| format!("raw/v2/{number:012}.rms");
    let put = |part: usize| {
        let bucket = bucket.clone();
        thread::spawn(move || {
            for number in (part..many).step_by(8) {
                bucket.put(&name(number), &vec![0; number % 3]).unwrap();
            }
        })
    };
    let putting: Vec<_> = (0..8).map(put).collect();
    putting.into_iter().for_each(|one| one.join().unwrap());
    bucket.put("raw/v22/other.rms", b"").unwrap();
    let listed = ObjectSource::list(&*bucket, "raw/v2").unwrap();
    assert_eq!(listed.len(), many);
    for (number, object) in listed.iter().enumerate() {
        assert_eq!(
            (&object.name, object.bytes),
            (&name(number), number as u64 % 3)
        );
    }
    let ends = bucket.ends(&listed, 1);
    assert_eq!(ends.len(), many);
    for (end, object) in ends.into_iter().zip(&listed) {
        assert_eq!(end.unwrap(), vec![0; object.bytes.min(1) as usize]);
    }
    assert_eq!(ObjectStore::list(&*bucket, "none").unwrap(), [""; 0]);
}

fn a_bucket_that_is_not_there_is_an_error_and_no_empty_store<S: Server>(server: &S) {
    let there = server.bucket("x");
    assert!(ObjectStore::list(&there, "raw/v2").unwrap().is_empty());
    let none = server.open("another/x");
    assert!(ObjectStore::list(&none, "raw/v2").is_err());
    assert!(none.put("raw/v2/a", b"1").is_err() && none.create("a", b"1").is_err());
}
