import { useMutation, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useRef, useState } from "react";

import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import { startSession } from "../api/session";
import { Dialog } from "../components/Dialog";
import { errorText } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";

/** The login: a screen at the start, a dialog over the page when the session has expired. */
export function Login({ again: isRenewal }: { again: boolean }) {
  const words = useWords().login;
  if (isRenewal) {
    return (
      <Dialog title={words.renewalTitle}>
        <p className="login-renewal">{words.renewalText}</p>
        <LoginOptions again />
        <p className="muted small">{words.notice}</p>
      </Dialog>
    );
  }
  return (
    <section className="login-screen" aria-labelledby="login-title">
      <div className="card login-card">
        <img src="/icon.svg" alt="" width={56} height={56} />
        <h1 id="login-title">{words.title}</h1>
        <p className="muted">{words.intro}</p>
        <LoginOptions again={false} />
        <p className="login-notice">{words.notice}</p>
      </div>
    </section>
  );
}

function LoginOptions({ again }: { again: boolean }) {
  const words = useWords().login;
  const options = useQuery({
    queryKey: ["login-options"],
    queryFn: () => unwrap(client.GET("/api/v1/session/ways")),
    staleTime: Infinity,
  });
  const provider = options.data?.provider ?? false;
  return (
    <div className="stack">
      <PasswordForm />
      {provider && <p className="login-or muted">{words.or}</p>}
      {provider && (
        <a className="button" href="/api/v1/oidc/login">
          {words.provider}
        </a>
      )}
      {provider && again && <p className="muted small">{words.providerHint}</p>}
    </div>
  );
}

function PasswordForm() {
  const all = useWords();
  const words = all.login;
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const trouble = useId();
  const enter = useMutation({
    mutationFn: () => unwrap(client.POST("/api/v1/session", { body: { name, password } })),
    onSuccess: startSession,
    onError: () => {
      setPassword("");
      field.current?.focus();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!enter.isPending) enter.mutate();
  };
  const reason = enter.isError
    ? loginErrorText(enter.error, words.refused, errorText(enter.error, all))
    : null;
  return (
    <form className="stack" onSubmit={submit}>
      <label className="field">
        <span>{words.name}</span>
        <input
          value={name}
          onChange={(event) => setName(event.target.value)}
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          autoFocus
          required
          maxLength={64}
        />
      </label>
      <label className="field">
        <span>{words.password}</span>
        <input
          ref={field}
          type="password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          autoComplete="current-password"
          required
          maxLength={256}
          aria-invalid={reason !== null}
          aria-describedby={trouble}
        />
      </label>
      <p id={trouble} className="login-error" role="alert">
        {reason}
      </p>
      <button type="submit" className="primary" aria-disabled={enter.isPending}>
        {enter.isPending ? words.loggingIn : words.logIn}
      </button>
    </form>
  );
}

function loginErrorText(error: unknown, refused: string, otherwise: string): string {
  return error instanceof Problem && error.code === "login_refused" ? refused : otherwise;
}
