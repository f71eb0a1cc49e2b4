package subprocess
import ("testing";"context"; "os"; "os/exec"; rr "github.com/tidemill/tidemill/runtime")
func TestZS(t *testing.T){
 rt:=newRuntime(t,Config{}); env,_:=rt.Prepare(context.Background(),rr.RunSpec{})
 for range 200 { if os.Getenv("BARE")!="" { for range 2 { exec.Command("sh","-c",":").Run() }; continue }; sb,err:=env.Open(context.Background(),testSpec("")); if err!=nil {panic(err)}; for range 2 { sb.Exec(context.Background(), rr.Command{Argv: []string{"sh","-c",":"}}) }; sb.Close(context.Background()) }
}
