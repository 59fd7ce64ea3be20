import { useMutation, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useRef, useState } from "react";

import { client, told } from "../api/client";
import { Problem } from "../api/problems";
import { begin } from "../api/session";
import { Dialog } from "../parts/Dialog";
import { reasonOf } from "../parts/Trouble";
import { useWords } from "../words/words";

/** Lets somebody in: at the start as a screen, and over the page where a session ended amid work. */
export function Login({ again }: { again: boolean }) {
  const words = useWords().session;
  if (again) {
    return (
      <Dialog title={words.endedTitle}>
        <p className="login-kept">{words.ended}</p>
        <Ways again />
        <p className="quiet small">{words.notice}</p>
      </Dialog>
    );
  }
  return (
    <section className="login-screen" aria-labelledby="login-title">
      <div className="card login-card">
        <img src="/icon.svg" alt="" width={56} height={56} />
        <h1 id="login-title">{words.title}</h1>
        <p className="quiet">{words.intro}</p>
        <Ways again={false} />
        <p className="login-notice">{words.notice}</p>
      </div>
    </section>
  );
}

function Ways({ again }: { again: boolean }) {
  const words = useWords().session;
  const ways = useQuery({
    queryKey: ["ways"],
    queryFn: () => told(client.GET("/api/v1/session/ways")),
    staleTime: Infinity,
  });
  const provider = ways.data?.provider ?? false;
  return (
    <div className="stack">
      <PasswordForm />
      {provider && <p className="login-or quiet">{words.or}</p>}
      {provider && (
        <a className="button" href="/api/v1/oidc/login">
          {words.provider}
        </a>
      )}
      {provider && again && <p className="quiet small">{words.providerAgain}</p>}
    </div>
  );
}

function PasswordForm() {
  const all = useWords();
  const words = all.session;
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const trouble = useId();
  const enter = useMutation({
    mutationFn: () => told(client.POST("/api/v1/session", { body: { name, password } })),
    onSuccess: begin,
    onError: () => {
      setPassword("");
      field.current?.focus();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!enter.isPending) enter.mutate();
  };
  const reason = enter.isError ? whyNot(enter.error, words.refused, reasonOf(enter.error, all)) : null;
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
      <p id={trouble} className="login-trouble" role="alert">
        {reason}
      </p>
      <button type="submit" className="primary" aria-disabled={enter.isPending}>
        {enter.isPending ? words.entering : words.enter}
      </button>
    </form>
  );
}

function whyNot(error: unknown, refused: string, otherwise: string): string {
  return error instanceof Problem && error.code === "login_refused" ? refused : otherwise;
}
