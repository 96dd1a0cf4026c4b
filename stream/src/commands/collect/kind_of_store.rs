//! Options that only one kind of store obeys: the other kind refuses them, in place of ignoring them.

use ringmark_console::Failure;
use ringmark_console::extension::store_url;

use super::args::Args;

/// What removes from a store of objects.
const REMOVES: &str = "a collector removes no objects; a lifecycle rule of the bucket does, or 'ringmark compact --keep-raw'";
/// Why a bucket has no rights of files, and nothing that is not durable.
const BUCKET: &str = "a bucket is no directory, and what it has is durable";

impl Args {
    /// Refuses options that the kind of store would ignore.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn check_kind_of_store(&self) -> Result<(), Failure> {
        let Some(objects) = &self.objects else {
            return match self.flush {
                None => Ok(()),
                Some(_) => Err(refused(
                    "--flush",
                    "--store",
                    "--objects",
                    "a disk has each block at once; --sync says when it counts as stored",
                )),
            };
        };
        let of_disks = [
            ("--keep-size", self.keep_size.is_some(), REMOVES),
            (
                "--keep-size-per-host",
                self.keep_size_per_host.is_some(),
                REMOVES,
            ),
            ("--keep-age", self.keep_age.is_some(), REMOVES),
            ("--min-free", self.min_free.is_some(), REMOVES),
            (
                "--segment-age",
                self.segment_age.is_some(),
                "--flush says when an object is put",
            ),
        ];
        let with = format!("--objects {}", objects.display());
        if let Some((option, _, why)) = of_disks.iter().find(|(_, is_given, _)| *is_given) {
            return Err(refused(option, &with, "--store", why));
        }
        let of_directories = [
            ("--sync", self.sync.is_some()),
            ("--init", self.init),
            ("--group-readable", self.group_readable),
        ];
        let is_bucket = store_url(objects).is_some();
        match of_directories
            .iter()
            .find(|(_, is_given)| is_bucket && *is_given)
        {
            Some((option, _)) => Err(refused(
                option,
                &with,
                "--store or --objects file:///DIR",
                BUCKET,
            )),
            None => Ok(()),
        }
    }
}

fn refused(option: &str, with: &str, expected: &str, why: &str) -> Failure {
    Failure::usage(format!(
        "{option}: found with {with}, expected with {expected} only: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn check(options: &str) -> Result<(), String> {
        let words = "collect --listen unix:///s ".to_owned() + options;
        let line = Line::try_parse_from(words.split(' ')).unwrap();
        let checked = line.args.check_kind_of_store();
        checked.map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_a_kind_of_store_would_ignore_is_refused() {
        for option in [
            "--keep-size 1G",
            "--keep-size-per-host 1G",
            "--keep-age 7d",
            "--min-free 5%",
            "--segment-age 1m",
        ] {
            assert_eq!(check(&format!("--store d {option}")), Ok(()), "{option}");
            let told = check(&format!("--objects file:///d {option}")).unwrap_err();
            let (name, _) = option.split_once(' ').unwrap();
            let text = format!("{name}: found with --objects /d, expected with --store only: ");
            assert!(told.starts_with(&text), "{told}");
        }
        for option in ["--sync cache", "--init", "--group-readable"] {
            assert_eq!(check(&format!("--store d {option}")), Ok(()), "{option}");
            assert_eq!(check(&format!("--objects file:///d {option}")), Ok(()));
            let told = check(&format!("--objects s3://b/p {option}")).unwrap_err();
            let text = "found with --objects s3://b/p, expected with --store or --objects file:///DIR only";
            assert!(told.contains(text), "{told}");
        }
        let told = check("--store d --flush 1s").unwrap_err();
        let text = "--flush: found with --store, expected with --objects only: ";
        assert!(told.starts_with(text), "{told}");
        let both = "--flush 1s --segment-size 1M --memory 32M";
        assert_eq!(check(&format!("--objects s3://b {both}")), Ok(()));
    }
}
