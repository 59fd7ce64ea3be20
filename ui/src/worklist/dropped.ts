/** Files that are dragged over the screen and dropped on it. */
import { useEffect, useRef, useState } from "react";

const FILES = "Files";

function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes(FILES) ?? false;
}

// A file that is dropped beside a place for files would replace the whole page.
for (const kind of ["dragover", "drop"] as const) {
  window.addEventListener(kind, (event) => {
    if (carriesFiles(event)) event.preventDefault();
  });
}

/** Whether files hover over the window; `onFiles` gets what is dropped. */
export function useDropped(onFiles: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const heard = useRef(onFiles);
  useEffect(() => {
    heard.current = onFiles;
  }, [onFiles]);
  useEffect(() => {
    // Entering a child comes before leaving its parent, hence the count.
    let depth = 0;
    const enter = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      if (event.dataTransfer && carriesFiles(event))
        void filesOf(event.dataTransfer).then((files) => heard.current(files));
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
  return over;
}

/** All files, those in folders too. */
async function filesOf(dropped: DataTransfer): Promise<File[]> {
  // The list is emptied as soon as the event is over, so entries are taken before anything is waited for.
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
  const found: FileSystemEntry[] = [];
  for (;;) {
    // A reader hands out a hundred at most, and an empty list at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(filesIn))).flat();
}
