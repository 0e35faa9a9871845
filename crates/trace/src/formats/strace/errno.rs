//! Names of errors.

/// Names of Linux's errnos from 1 on (errno(3), asm-generic/errno.h); numbers without one are not used.
#[rustfmt::skip]
const NAMES: [&str; 133] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN",
    "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR",
    "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK",
    "EPIPE", "EDOM", "ERANGE", "EDEADLOCK", "ENAMETOOLONG", "ENOLCK", "ENOSYS", "ENOTEMPTY", "ELOOP", "",
    "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC", "EL3HLT", "EL3RST", "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT",
    "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC", "EBADSLT", "", "EBFONT", "ENOSTR", "ENODATA", "ETIME",
    "ENOSR", "ENONET", "ENOPKG", "EREMOTE", "ENOLINK", "EADV", "ESRMNT", "ECOMM", "EPROTO", "EMULTIHOP",
    "EDOTDOT", "EBADMSG", "EOVERFLOW", "ENOTUNIQ", "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD", "ELIBSCN",
    "ELIBMAX", "ELIBEXEC", "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE",
    "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENOTSUP", "EPFNOSUPPORT",
    "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN", "ENETUNREACH", "ENETRESET", "ECONNABORTED",
    "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS", "ETIMEDOUT", "ECONNREFUSED",
    "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE", "EUCLEAN", "ENOTNAM", "ENAVAIL",
    "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE", "ECANCELED", "ENOKEY", "EKEYEXPIRED",
    "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD", "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

/// Further names of the same numbers.
const ALSO: [(&str, i64); 3] = [("EWOULDBLOCK", 11), ("EDEADLOCK", 35), ("ENOTSUP", 95)];

/// The number of an error.
pub fn number(name: &[u8]) -> Option<i64> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    let known = (1..).zip(NAMES).find(|(_, known)| *known == name).map(|(number, _)| number);
    known.or_else(|| ALSO.iter().find(|(known, _)| *known == name).map(|(_, number)| *number))
}

#[cfg(test)]
mod tests {
    use super::number;
    use std::io::Error;

    #[test]
    fn errors_have_the_numbers_of_the_kernel() {
        for (name, errno, says) in [
            ("EPERM", 1, "Operation not permitted"),
            ("ENOSYS", 38, "Function not implemented"),
            ("EOVERFLOW", 75, "Value too large for defined data type"),
            ("EUCLEAN", 117, "Structure needs cleaning"),
            ("EDQUOT", 122, "Disk quota exceeded"),
            ("ECANCELED", 125, "Operation canceled"),
            ("EHWPOISON", 133, "Memory page has hardware error"),
            ("EWOULDBLOCK", 11, "Resource temporarily unavailable"),
            ("ENOTSUP", 95, "Operation not supported"),
        ] {
            assert_eq!(number(name.as_bytes()), Some(errno), "{name}");
            assert!(Error::from_raw_os_error(errno as i32).to_string().starts_with(says), "{name}");
        }
        assert_eq!((number(b""), number(b"ERESTARTSYS")), (None, None));
    }
}
