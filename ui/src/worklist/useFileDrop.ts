/** Files and folders dropped on the window. */
import { useEffect, useRef, useState } from "react";

const FILES = "Files";

function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes(FILES) ?? false;
}

// Without this, the browser opens a dropped file in place of the page.
for (const kind of ["dragover", "drop"] as const) {
  window.addEventListener(kind, (event) => {
    if (carriesFiles(event)) event.preventDefault();
  });
}

/** Returns whether files are dragged over the window; `onFiles` gets the dropped files. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [isOver, setIsOver] = useState(false);
  const latestHandler = useRef(onFiles);
  useEffect(() => {
    latestHandler.current = onFiles;
  }, [onFiles]);
  useEffect(() => {
    // dragenter of a child fires before dragleave of its parent, so nested enters are counted.
    let depth = 0;
    const enter = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth += 1;
      setIsOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setIsOver(false);
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setIsOver(false);
      if (event.dataTransfer && carriesFiles(event))
        void droppedFiles(event.dataTransfer).then((files) => latestHandler.current(files));
    };
    window.addEventListener("dragenter", enter);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragenter", enter);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}

/** All files, including those in folders. */
async function droppedFiles(dropped: DataTransfer): Promise<File[]> {
  // The browser empties the list after the event, so read all entries before the first await.
  const plain = [...dropped.files];
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.every((entry) => entry.isFile)) return plain;
  return (await Promise.all(entries.map(filesIn))).flat();
}

async function filesIn(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile)
    return [
      await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)),
    ];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const entries: FileSystemEntry[] = [];
  for (;;) {
    // readEntries returns at most 100 entries per call, and an empty list at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) break;
    entries.push(...some);
  }
  return (await Promise.all(entries.map(filesIn))).flat();
}
