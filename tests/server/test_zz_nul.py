import sys; sys.path.insert(0,'/work/main/tests/server')
import pytest
from reading_room import corners
def test_x(room):
    s=room.study("alma"); 
    B=corners((5,5,40,80))
    for bad in ("a\0b", "a\ud800b", "\ufffe\U0010ffff"):
      for m,p,b in [("POST","/tokens",{"name":bad,"role":"reader"}),("POST","/tokens",{"name":"x","role":"reader","user":bad}),("POST","/users",{"name":bad,"role":"reader"}),
        ("POST","/users",{"name":"u"+str(len(bad)),"role":"reader","password":bad+"abcdefghijklmn"}),
        ("POST","/session",{"name":bad,"password":bad}),
        ("PATCH","/users/rolf",{"password":bad+"abcdefghijklmn"}),
        ("POST",f"/models/{s['model']}/concepts/active_tb/discard",{"prototypes":[0],"name":bad}),
        ("POST",f"/models/{s['model']}/concepts/active_tb/discard",{"prototypes":[10**30],"name":"x"}),
        ("POST",f"/models/{s['model']}/concepts/active_tb/discard",{"prototypes":[-1],"name":"x"}),
        ("POST","/concepts",{"name":"cavity"+str(len(bad)),"description":bad}),
        ("POST","/concepts",{"name":"cavityx"+str(len(bad)),"description":"x","title":bad}),
        ("POST","/concepts",{"name":bad,"description":"x"}),
        ("POST",f"/studies/{s['id']}/check",{"box":B,"concept":bad}),
        ("POST",f"/studies/{s['id']}/rejections",{"concept":"active_tb","reason":bad}),
        ("POST",f"/studies/{s['id']}/boxes",{"box":B,"concept":None,"reason":bad}),
        ("GET",f"/studies/{s['id']}/history",None),
        ]:
        import json
        r=room.ask("alma",m,p,content=None if b is None else json.dumps(b).encode(),headers={"Content-Type":"application/json"})
        print(r.status_code, m,p,ascii(b)[:80], r.json().get("code") if r.status_code>=400 else "")
    import time; time.sleep(3)
    for j in room.get("alma","/jobs").json(): print(j["state"],ascii(j["news"]))
    for path in ("/users/a%00b","/films?search=%00","/films?search=%ff","/log?actor=%00","/log?since=%00","/models/%00","/films/%F0","/studies?film=%00"):
        r=room.ask("alma","PATCH" if "users" in path else "GET",path,json={} if "users" in path else None); print(r.status_code,path,r.text[:100])
